-- Leases sagas that are due: woken, and not with a living runner. An uncertain one goes on the way it went, to be asked again. Rows that another runner is claiming are skipped. Each
-- claim has an attempt id of its own, so that a runner that lost a saga and got it back is not taken for its former self.
-- $1 names, $2 lease in seconds, $3 at most so many
update :"schema".saga
set attempt_id = gen_random_uuid(), woken = false, state = coalesce(resume_state, state), resume_state = null,
    lease_expires_at = clock_timestamp() + make_interval(secs => $2)
where saga_id in (
  select saga_id from :"schema".saga
  where state in ('running', 'compensating', 'uncertain') and name = any ($1)
    and wake_at <= clock_timestamp() and lease_expires_at <= clock_timestamp()
  order by wake_at
  limit $3
  for update skip locked)
returning saga_id, attempt_id, name, state, input, failure, tries, deadline_at <= clock_timestamp() as overdue
