-- Drops the refused event itself, its followers stay.
-- $1 topic, $2 key, $3 event id
delete from :"schema".outbox_held_event where topic = $1 and key = $2 and event_id = $3
