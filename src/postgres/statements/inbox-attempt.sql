-- Charges a failure of a handler. Counted here, so that redeliveries to other processes go on counting.
-- $1 consumer, $2 event id, $3 error
insert into :"schema".event_attempt as x (consumer_name, event_id, attempts, error)
values ($1, $2, 1, $3)
on conflict (consumer_name, event_id) do update set
  attempts   = x.attempts + 1,
  error      = excluded.error,
  updated_at = clock_timestamp()
returning attempts
