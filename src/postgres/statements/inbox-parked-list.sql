-- $1 consumer or null for all, $2 limit
select consumer_name, topic, key, case reason when 'gap' then 'gap' else 'poison' end as reason,
       count(*) as events, max(error) as error,
       extract(epoch from min(parked_at))::float8 * 1000 as since_ms
from :"schema".parked_event
where $1::text is null or consumer_name = $1
group by 1, 2, 3, 4
order by min(parked_at)
limit $2
