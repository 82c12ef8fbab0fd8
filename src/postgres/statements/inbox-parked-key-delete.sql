-- $1 consumer, $2 topic, $3 key
delete from :"schema".parked_key where consumer_name = $1 and topic = $2 and key = $3
