-- Records a stored event that is replayed: mostly there since it was stored, unless retention has passed meanwhile.
-- $1 consumer, $2 event id
insert into :"schema".processed_event (event_id, consumer_name) values ($2, $1) on conflict do nothing
