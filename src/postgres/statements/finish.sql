-- Flight 2: the insert that decides. COMMIT may follow in the same flight, because every failure is an error and never
-- "zero rows": operation_id is null, and so refused, where the claim's transaction is gone (the handler ended it);
-- fingerprint is null, and so refused, where another attempt's record is live. An expired row is taken over.
-- $1 scope, $2 operation, $3 key, $4 operation id, $5 fingerprint, $6 disposition, $7 status, $8 headers, $9 body,
-- $10 retention in seconds
insert into :"schema".idempotency_record as x
  (scope, operation, key, operation_id, fingerprint, disposition, status, headers, body, expires_at)
values
  ($1, $2, $3, case when current_setting('idemkit.operation_id', true) = $4 then $4::uuid end,
   $5, $6, $7, $8, $9, clock_timestamp() + make_interval(secs => $10))
on conflict (scope, operation, key) do update set
  fingerprint  = case when x.expires_at <= now() then excluded.fingerprint end,
  operation_id = excluded.operation_id,
  disposition  = excluded.disposition,
  status       = excluded.status,
  headers      = excluded.headers,
  body         = excluded.body,
  created_at   = excluded.created_at,
  expires_at   = excluded.expires_at
