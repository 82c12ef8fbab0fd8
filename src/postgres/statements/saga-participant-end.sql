-- $1 participant, $2 saga id, $3 step, $4 direction, $5 result
update :"schema".saga_step set state = 'done', result = $5, ended_at = clock_timestamp()
where participant = $1 and saga_id = $2 and step_name = $3 and direction = $4
