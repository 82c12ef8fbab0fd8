-- Flight 1: reads the live record and, only where there is none, tries the lock (PROTOCOLS section 1). Reading first
-- keeps replays of a finished key from locking each other out. The lock is the transaction's, never the session's.
-- $1 scope, $2 operation, $3 key, $4 lock, $5 idle timeout in ms, $6 operation id, $7 lock timeout in ms
select x.operation_id, x.fingerprint, x.disposition, x.status, x.headers, x.body,
       case when x.key is null then pg_try_advisory_xact_lock($4::bigint) end as locked,
       set_config('idle_in_transaction_session_timeout', $5, true),
       set_config('idemkit.operation_id', $6, true),
       case when current_setting('lock_timeout') = '0' then set_config('lock_timeout', $7, true) end,
       current_setting('transaction_isolation') as isolation
from (values (1)) as v (one)
left join :"schema".idempotency_record as x
  on x.scope = $1 and x.operation = $2 and x.key = $3 and x.expires_at > now()
