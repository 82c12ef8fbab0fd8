-- The intent of a step, before it; the fence locks the saga's row (see effect-intend).
-- $1 saga id, $2 attempt id, $3 lease in seconds, $4 step, $5 direction, $6 derived key
with mine as (
  update :"schema".saga
  set lease_expires_at = clock_timestamp() + make_interval(secs => $3)
  where saga_id = $1 and attempt_id = $2 and state in ('running', 'compensating')
  returning saga_id)
insert into :"schema".saga_step as x (participant, saga_id, step_name, direction, derived_key, state)
select '', saga_id, $4, $5, $6, 'intent' from mine
on conflict (saga_id, step_name, direction, participant) do update set state = 'intent', intended_at = excluded.intended_at
where x.state in ('intent', 'absent')
returning step_name
