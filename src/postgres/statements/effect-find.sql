-- The ledger of one operation, read by an attempt that takes it over.
-- $1 operation id
select name, derived_key, state, result,
       extract(epoch from clock_timestamp() - intended_at)::float8 * 1000 as age_ms
from :"schema".effect
where operation_id = $1
