-- The oldest event of a parked key; those behind a gap wait for their version instead.
-- $1 consumer, $2 topic, $3 key
select event_id, topic, key, type, payload, headers, aggregate_version, saga_id, step_name, original_event_id
from :"schema".parked_event
where consumer_name = $1 and topic = $2 and key = $3 and reason <> 'gap'
order by id
limit 1
