-- A step whose writes are in this database, or whose command is in the outbox: recorded in their transaction.
-- The tries of the next step are counted from 0.
-- $1 saga id, $2 attempt id, $3 lease in seconds, $4 step, $5 direction, $6 derived key, $7 state, $8 result
with mine as (
  update :"schema".saga
  set lease_expires_at = clock_timestamp() + make_interval(secs => $3), tries = 0
  where saga_id = $1 and attempt_id = $2 and state in ('running', 'compensating')
  returning saga_id),
recorded as (
  insert into :"schema".saga_step as x (participant, saga_id, step_name, direction, derived_key, state, result, ended_at)
  select '', saga_id, $4, $5, $6, $7, $8, case when $7 = 'done' then clock_timestamp() end from mine
  on conflict (saga_id, step_name, direction, participant) do update
  set state = excluded.state, result = excluded.result, ended_at = excluded.ended_at
  where x.state in ('intent', 'absent')
  returning 1)
select 1 / count(*) from recorded
