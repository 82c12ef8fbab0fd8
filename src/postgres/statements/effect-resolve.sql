-- An operator's word on a call whose outcome nobody knew; the operation goes on from there. Nothing happens to a call that
-- has ended, or to an operation that is not uncertain.
-- $1 operation id, $2 name, $3 state, $4 result
with mine as (
  update :"schema".idempotency_record
  set disposition = 'running', lease_expires_at = clock_timestamp()
  where operation_id = $1 and disposition = 'uncertain'
    and exists (select from :"schema".effect where operation_id = $1 and name = $2 and state = 'intent')
  returning operation_id)
update :"schema".effect as e
set state = $3, result = $4, ended_at = clock_timestamp()
from mine
where e.operation_id = mine.operation_id and e.name = $2 and e.state = 'intent'
returning e.name
