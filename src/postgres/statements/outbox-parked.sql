-- The parked keys, oldest first, with how many events each holds back.
-- $1 limit
select p.topic, p.key, p.event_id, p.reason, extract(epoch from p.parked_at)::float8 * 1000 as parked_at_ms,
       (select count(*)::int from :"schema".outbox_held_event as h where h.topic = p.topic and h.key = p.key) as held
from :"schema".outbox_parked_key as p
order by p.parked_at, p.topic, p.key
limit $1
