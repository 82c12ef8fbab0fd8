-- Locked first: two replays of one dead letter go one after the other.
-- $1 consumer, $2 event id
select event_id, topic, key, type, payload, headers, aggregate_version, saga_id, step_name, original_event_id
from :"schema".dead_letter
where consumer_name = $1 and event_id = $2
for update
