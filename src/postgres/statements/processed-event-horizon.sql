-- Written with the TRUNCATE of a day: deliveries read it, and know an older id for late. No row where the day had
-- expired before: then it is not truncated again.
-- $1 time in ms
update :"schema".processed_event_horizon
set expired_before = to_timestamp($1::float8 / 1000)
where expired_before < to_timestamp($1::float8 / 1000)
