-- The horizon of the records as it is now. Under an isolation that reads an older snapshot it is locked, so that the
-- transaction fails where the horizon has moved since, and is repeated; else nothing keeps the horizon from moving.
with locked as (
  select expired_before from :"schema".processed_event_horizon
  where current_setting('transaction_isolation') not in ('read committed', 'read uncommitted')
  for share
)
select extract(epoch from coalesce((select expired_before from locked), h.expired_before))::float8 * 1000
         as expired_before_ms
from :"schema".processed_event_horizon as h
