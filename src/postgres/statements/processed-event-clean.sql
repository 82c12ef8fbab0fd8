-- One cleaner at a time, for as long as its transaction; and it never keeps deliveries waiting for longer than the
-- lock timeout, since those queue behind it.
-- $1 lock, $2 lock timeout in ms
select pg_try_advisory_xact_lock($1::bigint) as locked, set_config('lock_timeout', $2, true)
