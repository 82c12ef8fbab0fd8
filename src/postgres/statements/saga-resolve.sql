-- An operator's word on a step whose outcome nobody knew; the saga goes on from there.
-- $1 saga id, $2 step, $3 direction, $4 state, $5 result
with mine as (
  update :"schema".saga
  set state = resume_state, resume_state = null, tries = 0, wake_at = clock_timestamp()
  where saga_id = $1 and state = 'uncertain'
    and exists (select from :"schema".saga_step
                where saga_id = $1 and participant = '' and step_name = $2 and direction = $3 and state = 'intent')
  returning saga_id)
update :"schema".saga_step as x
set state = $4, result = $5, ended_at = clock_timestamp()
from mine
where x.saga_id = mine.saga_id and x.participant = '' and x.step_name = $2 and x.direction = $3 and x.state = 'intent'
returning x.step_name
