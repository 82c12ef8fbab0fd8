-- The lowest version that waits behind a gap of the aggregate.
-- $1 consumer, $2 aggregate
select event_id, topic, key, type, payload, headers, aggregate_version, saga_id, step_name, original_event_id,
       waiting_version
from :"schema".parked_event
where consumer_name = $1 and aggregate = $2 and reason = 'gap'
order by waiting_version, id
limit 1
