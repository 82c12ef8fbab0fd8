-- Claims an operation of the external mode, or takes over what a dead attempt left; autocommit, so that nothing is held
-- across a call. The one row arbitrates: no row comes back where the operation is finished, uncertain, leased to a living
-- attempt, or another command. clock_timestamp(): now() would miss a lease that expired while the statement waited.
-- $1 scope, $2 operation, $3 key, $4 operation id, $5 fingerprint, $6 attempt id, $7 lease in seconds, $8 command
insert into :"schema".idempotency_record as x
  (scope, operation, key, operation_id, fingerprint, disposition, headers, body, expires_at,
   attempt_id, attempt, lease_expires_at, command)
values
  ($1, $2, $3, $4, $5, 'running', '[]', '', 'infinity',
   $6, 1, clock_timestamp() + make_interval(secs => $7), $8)
on conflict (scope, operation, key) do update set
  attempt          = x.attempt + 1,
  attempt_id       = excluded.attempt_id,
  lease_expires_at = excluded.lease_expires_at
where x.disposition = 'running' and x.lease_expires_at <= clock_timestamp() and x.fingerprint = excluded.fingerprint
returning operation_id, attempt
