-- $1 consumer, $2 topic, $3 key
insert into :"schema".parked_key (consumer_name, topic, key) values ($1, $2, $3) on conflict do nothing
