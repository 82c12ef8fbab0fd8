-- A refusal, stored in a transaction of its own after the handler's was rolled back: the same asserting insert, without
-- the claim's marker.
-- $1 scope, $2 operation, $3 key, $4 operation id, $5 fingerprint, $6 status, $7 headers, $8 body, $9 retention in seconds
insert into :"schema".idempotency_record as x
  (scope, operation, key, operation_id, fingerprint, disposition, status, headers, body, expires_at)
values
  ($1, $2, $3, $4, $5, 'refuse', $6, $7, $8, clock_timestamp() + make_interval(secs => $9))
on conflict (scope, operation, key) do update set
  fingerprint  = case when x.expires_at <= now() then excluded.fingerprint end,
  operation_id = excluded.operation_id,
  disposition  = excluded.disposition,
  status       = excluded.status,
  headers      = excluded.headers,
  body         = excluded.body,
  created_at   = excluded.created_at,
  expires_at   = excluded.expires_at
