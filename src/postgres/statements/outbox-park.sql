-- Parks a key whose event was refused, and moves the event and its followers of the same batch out of the way.
-- $1 shard, $2 owner, $3 epoch, $4 ids, $5 topic, $6 key, $7 event id of the refused, $8 reason
with fence as materialized (
  select shard from :"schema".outbox_shard where shard = $1 and owner = $2 and epoch = $3 for share),
moved as (
  delete from :"schema".outbox_event
  where shard = $1 and id = any($4::bigint[]) and exists (select from fence)
  returning shard, id, event_id, created_at, aggregate_version, topic, key, type, saga_id, step_name, headers, payload),
held as (
  insert into :"schema".outbox_held_event
    (shard, id, event_id, created_at, aggregate_version, topic, key, type, saga_id, step_name, headers, payload)
  select shard, id, event_id, created_at, aggregate_version, topic, key, type, saga_id, step_name, headers, payload
  from moved
  returning id),
parked as (
  insert into :"schema".outbox_parked_key (topic, key, shard, event_id, reason)
  select $5, $6, $1, $7::uuid, $8 where exists (select from moved where event_id = $7::uuid)
  on conflict (topic, key) do nothing
  returning extract(epoch from parked_at)::float8 * 1000 as ms)
select exists (select from fence) as owned, (select count(*)::int from held) as held, (select ms from parked) as parked_at_ms
