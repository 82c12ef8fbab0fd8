-- One bounded batch of rows outside the days, by the time of processing: the time inside such an id says nothing.
-- $1 retention in seconds, $2 batch size
delete from :"schema".processed_event_default
where ctid = any (array(
  select ctid from :"schema".processed_event_default
  where processed_at < clock_timestamp() - make_interval(secs => $1)
  order by processed_at
  limit $2
  for update skip locked))
