-- Puts the held events of a key back under their old ids: in front of whatever was enqueued since.
-- $1 topic, $2 key
with moved as (
  delete from :"schema".outbox_held_event
  where topic = $1 and key = $2
  returning shard, id, event_id, created_at, aggregate_version, topic, key, type, saga_id, step_name, headers, payload)
insert into :"schema".outbox_event
  (shard, id, event_id, created_at, aggregate_version, topic, key, type, saga_id, step_name, headers, payload)
overriding system value
select shard, id, event_id, created_at, aggregate_version, topic, key, type, saga_id, step_name, headers, payload
from moved
order by id
