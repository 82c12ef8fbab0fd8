-- A participant's record of a step, in the transaction of its effects; a repeat finds the first one's.
-- $1 participant, $2 saga id, $3 step, $4 direction, $5 state
insert into :"schema".saga_step (participant, saga_id, step_name, direction, derived_key, state)
values ($1, $2, $3, $4, '', $5)
on conflict (saga_id, step_name, direction, participant) do nothing
returning step_name
