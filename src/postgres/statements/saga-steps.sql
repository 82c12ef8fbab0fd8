-- The ledger of one saga.
-- $1 saga id
select step_name, direction, derived_key, state, result,
       extract(epoch from clock_timestamp() - intended_at)::float8 * 1000 as age_ms
from :"schema".saga_step
where saga_id = $1 and participant = ''
