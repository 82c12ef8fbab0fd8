-- Stores an event that nobody will try again unless told to. A dead letter that failed again keeps its place.
-- $1 consumer, $2 event id, $3 topic, $4 key, $5 type, $6 payload, $7 headers, $8 aggregate version, $9 saga id,
-- $10 step name, $11 the event id as it came, $12 reason, $13 error, $14 attempts
insert into :"schema".dead_letter as x
  (consumer_name, event_id, topic, key, type, payload, headers, aggregate_version, saga_id, step_name,
   original_event_id, reason, error, attempts)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
on conflict (consumer_name, event_id) do update set
  reason   = excluded.reason,
  error    = excluded.error,
  attempts = x.attempts + excluded.attempts
