-- Failures of events that never came back.
-- $1 retention in seconds, $2 batch size
delete from :"schema".event_attempt
where ctid = any (array(
  select ctid from :"schema".event_attempt
  where updated_at < clock_timestamp() - make_interval(secs => $1)
  limit $2
  for update skip locked))
