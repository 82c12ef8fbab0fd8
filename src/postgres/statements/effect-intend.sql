-- The intent of a call, before the call. The renewal locks the operation's row where the attempt is mine, so a take-over
-- waits for this statement or makes it do nothing; a look without a lock would let a stale attempt slip through.
-- $1 scope, $2 operation, $3 key, $4 attempt id, $5 lease in seconds, $6 name, $7 derived key
with mine as (
  update :"schema".idempotency_record
  set lease_expires_at = clock_timestamp() + make_interval(secs => $5)
  where scope = $1 and operation = $2 and key = $3 and attempt_id = $4 and disposition = 'running'
  returning operation_id)
insert into :"schema".effect as e (operation_id, name, derived_key, attempt_id, state)
select operation_id, $6, $7, $4::uuid, 'intent' from mine
on conflict (operation_id, name) do update set
  attempt_id = excluded.attempt_id, state = 'intent', intended_at = excluded.intended_at
where e.state in ('intent', 'absent')
returning name
