-- Operations without an end, the oldest first, with the calls that are open in them.
-- $1 states, $2 at most so many
select x.scope, x.operation, x.operation_id, x.disposition, x.attempt,
       extract(epoch from clock_timestamp() - x.created_at)::float8 * 1000 as age_ms,
       x.lease_expires_at <= clock_timestamp() as abandoned,
       array(select e.name from :"schema".effect as e
             where e.operation_id = x.operation_id and e.state = 'intent' order by e.intended_at) as open_effects
from :"schema".idempotency_record as x
where x.disposition = any ($1)
order by x.created_at
limit $2
