-- Starts a saga, once for its id.
-- $1 saga id, $2 name, $3 input, $4 deadline in seconds or null
insert into :"schema".saga (saga_id, name, state, input, deadline_at)
values ($1, $2, 'running', $3, coalesce(clock_timestamp() + make_interval(secs => $4), 'infinity'))
on conflict (saga_id) do nothing
returning saga_id
