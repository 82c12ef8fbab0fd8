-- For update: a follower that is being parked holds the row for share, and the release must see it.
-- $1 consumer, $2 topic, $3 key
select true as parked from :"schema".parked_key where consumer_name = $1 and topic = $2 and key = $3 for update
