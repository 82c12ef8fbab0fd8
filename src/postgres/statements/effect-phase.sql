-- The result of a phase, in the transaction of its writes: intent and result in one, since nothing leaves the database.
-- $1 scope, $2 operation, $3 key, $4 attempt id, $5 lease in seconds, $6 name, $7 result
with mine as (
  update :"schema".idempotency_record
  set lease_expires_at = clock_timestamp() + make_interval(secs => $5)
  where scope = $1 and operation = $2 and key = $3 and attempt_id = $4 and disposition = 'running'
  returning operation_id)
insert into :"schema".effect (operation_id, name, derived_key, attempt_id, state, result, ended_at)
select operation_id, $6, '', $4::uuid, 'done', $7, clock_timestamp() from mine
