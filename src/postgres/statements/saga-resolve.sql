-- An operator's word on a step whose outcome nobody knew, or that was refused where the saga can't turn round (a compensation,
-- or an action past the pivot); the saga goes on from there.
-- $1 saga id, $2 step, $3 direction, $4 state, $5 result
with mine as (
  update :"schema".saga
  set state = resume_state, resume_state = null, tries = 0, wake_at = clock_timestamp()
  where saga_id = $1 and state = 'uncertain'
    and exists (select from :"schema".saga_step as s
                where s.saga_id = $1 and s.participant = '' and s.step_name = $2 and s.direction = $3
                  and (s.state = 'intent'
                       or s.state = 'refused' and (s.direction = 'action') = (saga.resume_state = 'running')))
  returning saga_id)
update :"schema".saga_step as x
set state = $4, result = $5, ended_at = clock_timestamp()
from mine
where x.saga_id = mine.saga_id and x.participant = '' and x.step_name = $2 and x.direction = $3
returning x.step_name
