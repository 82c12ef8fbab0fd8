-- Parks keys whose events were refused, and moves these and their followers of the same batch out of the way.
-- $1 shard, $2 owner, $3 epoch, $4 ids; and of each refused event $5 topics, $6 keys, $7 event ids, $8 reasons
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
  from moved),
parked as (
  insert into :"schema".outbox_parked_key (topic, key, shard, event_id, reason)
  select r.topic, r.key, $1, r.event_id, r.reason
  from unnest($5::text[], $6::text[], $7::uuid[], $8::text[]) as r (topic, key, event_id, reason)
  where r.event_id in (select event_id from moved)
  order by r.topic, r.key
  on conflict (topic, key) do nothing
  returning event_id, extract(epoch from parked_at)::float8 * 1000 as ms)
select exists (select from fence) as owned,
       array(select event_id::text from parked order by event_id) as parked,
       (select min(ms) from parked) as parked_at_ms
