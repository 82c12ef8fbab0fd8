-- The result of a step that was intended; the tries of the next one are counted from 0.
-- $1 saga id, $2 attempt id, $3 lease in seconds, $4 step, $5 direction, $6 state, $7 result
with mine as (
  update :"schema".saga
  set lease_expires_at = clock_timestamp() + make_interval(secs => $3), tries = 0
  where saga_id = $1 and attempt_id = $2 and state in ('running', 'compensating')
  returning saga_id)
update :"schema".saga_step as x
set state = $6, result = $7, ended_at = clock_timestamp()
from mine
where x.saga_id = mine.saga_id and x.participant = '' and x.step_name = $4 and x.direction = $5 and x.state = 'intent'
returning x.step_name
