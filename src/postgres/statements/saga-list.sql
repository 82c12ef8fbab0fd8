-- Sagas without an end, the oldest first, with the steps that are open in them, or refused where the saga can't turn round.
-- $1 states, $2 at most so many
select x.saga_id, x.name, x.state, x.tries,
       extract(epoch from clock_timestamp() - x.created_at)::float8 * 1000 as age_ms,
       array(select s.step_name || ':' || s.direction from :"schema".saga_step as s
             where s.saga_id = x.saga_id and s.participant = ''
               and (s.state in ('intent', 'waiting')
                    or s.state = 'refused' and (s.direction = 'action') = (x.resume_state = 'running'))
             order by s.intended_at) as open_steps
from :"schema".saga as x
where x.state = any ($1)
order by x.created_at
limit $2
