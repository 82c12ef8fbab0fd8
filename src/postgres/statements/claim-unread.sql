-- Flight 1 under SERIALIZABLE: the record was read in a statement of its own before BEGIN, because reading it inside
-- makes every two claims a dependency (457 commits and 2,871 aborts with the read inside; 3,548 and 0 outside).
-- $1 lock, $2 idle timeout in ms, $3 operation id, $4 lock timeout in ms
select pg_try_advisory_xact_lock($1::bigint) as locked,
       set_config('idle_in_transaction_session_timeout', $2, true),
       set_config('idemkit.operation_id', $3, true),
       case when current_setting('lock_timeout') = '0' then set_config('lock_timeout', $4, true) end,
       current_setting('transaction_isolation') as isolation
