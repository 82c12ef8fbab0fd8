-- Gives an operation back whose answer is not final. Where a call was intended the row stays, with its lease over, so that
-- the next attempt finds the ledger; where none was, nothing is left behind.
-- $1 scope, $2 operation, $3 key, $4 attempt id
with mine as (
  select operation_id from :"schema".idempotency_record
  where scope = $1 and operation = $2 and key = $3 and attempt_id = $4 and disposition = 'running'
  for update),
gone as (
  delete from :"schema".idempotency_record as x using mine
  where x.scope = $1 and x.operation = $2 and x.key = $3
    and not exists (select from :"schema".effect as e where e.operation_id = mine.operation_id)
  returning 1)
update :"schema".idempotency_record as x
set lease_expires_at = clock_timestamp(), attempt_id = null
from mine
where x.scope = $1 and x.operation = $2 and x.key = $3 and not exists (select from gone)
