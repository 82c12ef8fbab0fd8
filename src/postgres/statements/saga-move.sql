-- Moves a saga on, under the compare-and-set on its attempt: a new state, another try later, or both. The lease is given
-- back where the saga has to wait or has ended; an uncertain one without a wait is left to a person. Failing with a division by zero, it lets COMMIT follow in the same flight.
-- $1 saga id, $2 attempt id, $3 state, $4 failure or null, $5 tries, $6 wait in seconds or null to go on at once,
-- $7 resume state or null
with mine as (
  update :"schema".saga
  set state            = $3,
      failure          = coalesce($4, failure),
      tries            = $5,
      resume_state     = $7,
      wake_at          = case when $3 = 'uncertain' and $6::float8 is null then 'infinity'
                              else clock_timestamp()
                                   + make_interval(secs => case when woken then 0 else coalesce($6::float8, 0) end) end,
      woken            = false,
      ended_at         = case when $3 in ('committed', 'compensated') then clock_timestamp() end,
      attempt_id       = case when $6::float8 is null and $3 in ('running', 'compensating') then attempt_id end,
      lease_expires_at = case when $6::float8 is null and $3 in ('running', 'compensating') then lease_expires_at
                              else '-infinity' end
  where saga_id = $1 and attempt_id = $2 and state in ('running', 'compensating')
  returning 1)
select 1 / count(*) from mine
