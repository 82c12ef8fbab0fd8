-- Opens a transaction of the external mode with the bounds of the atomic one.
-- $1 idle timeout in ms, $2 lock timeout in ms
select set_config('idle_in_transaction_session_timeout', $1, true),
       case when current_setting('lock_timeout') = '0' then set_config('lock_timeout', $2, true) end
