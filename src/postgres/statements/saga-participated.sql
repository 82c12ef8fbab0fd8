-- $1 participant, $2 saga id, $3 step, $4 direction
select state, result from :"schema".saga_step
where participant = $1 and saga_id = $2 and step_name = $3 and direction = $4
