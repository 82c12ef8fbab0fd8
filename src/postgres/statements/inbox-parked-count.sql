-- $1 consumer, $2 topic, $3 key
select count(*)::int as parked from :"schema".parked_event
where consumer_name = $1 and topic = $2 and key = $3
