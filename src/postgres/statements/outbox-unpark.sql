-- First of a release: whoever is moving a follower out of the way is waited for, so that the next statement sees it.
-- $1 topic, $2 key
delete from :"schema".outbox_parked_key where topic = $1 and key = $2 returning shard, event_id
