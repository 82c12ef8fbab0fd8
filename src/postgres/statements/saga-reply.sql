-- A reply to a step that waits, in the transaction of the event that brought it; wakes the saga. A reply to a step that
-- does not wait (a repeated one, or one to an action after the saga has turned round) changes nothing.
-- $1 saga id, $2 step, $3 direction, $4 state, $5 result
with answered as (
  update :"schema".saga_step
  set state = $4, result = $5, ended_at = clock_timestamp()
  where saga_id = $1 and participant = '' and step_name = $2 and direction = $3 and state = 'waiting'
    and exists (select from :"schema".saga as s
                where s.saga_id = $1 and s.state = case $3 when 'action' then 'running' else 'compensating' end)
  returning saga_id)
update :"schema".saga as x
set wake_at = clock_timestamp(), woken = true, tries = 0
from answered
where x.saga_id = answered.saga_id
returning x.saga_id
