-- Moves followers of parked keys out of the way. Their keys' rows are locked: a release that runs now waits for us and
-- then takes these along, or has ended, and we leave them where they are.
-- $1 shard, $2 owner, $3 epoch, $4 ids
with fence as materialized (
  select shard from :"schema".outbox_shard where shard = $1 and owner = $2 and epoch = $3 for share),
parked as materialized (
  select topic, key from :"schema".outbox_parked_key where shard = $1 order by topic, key for share),
moved as (
  delete from :"schema".outbox_event as e
  using parked as p
  where e.shard = $1 and e.id = any($4::bigint[]) and e.topic = p.topic and e.key = p.key and exists (select from fence)
  returning e.*),
held as (
  insert into :"schema".outbox_held_event
    (shard, id, event_id, created_at, aggregate_version, topic, key, type, saga_id, step_name, headers, payload)
  select shard, id, event_id, created_at, aggregate_version, topic, key, type, saga_id, step_name, headers, payload
  from moved
  returning id)
select exists (select from fence) as owned, (select count(*)::int from held) as held
