-- $1 consumer, $2 event id
delete from :"schema".parked_event where consumer_name = $1 and event_id = $2
