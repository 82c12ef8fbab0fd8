-- The heartbeat of a runner; attempts that do not come back have lost their sagas.
-- $1 attempt ids, $2 lease in seconds
update :"schema".saga
set lease_expires_at = clock_timestamp() + make_interval(secs => $2)
where saga_id in (
  select saga_id from :"schema".saga
  where state in ('running', 'compensating') and attempt_id = any ($1::uuid[])
  order by saga_id
  for update)
returning attempt_id
