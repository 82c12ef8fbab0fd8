-- $1 consumer or null for all, $2 limit
select consumer_name, original_event_id, topic, key, type, reason, error, attempts,
       extract(epoch from created_at)::float8 * 1000 as at_ms
from :"schema".dead_letter
where $1::text is null or consumer_name = $1
order by created_at
limit $2
