-- The aggregates of a key with events that wait behind a gap.
-- $1 consumer, $2 topic, $3 key
select distinct aggregate from :"schema".parked_event
where consumer_name = $1 and topic = $2 and key = $3 and reason = 'gap'
