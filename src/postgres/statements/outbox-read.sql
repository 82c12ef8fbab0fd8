-- The next events of a shard, always from its lowest id: a cursor would skip the event of a writer that drew its id early
-- and committed late. Bounded by rows and by bytes; the first row comes whatever its size.
-- Sent unprepared: a plan made while the table was empty reads the whole of a backlog. So does one made with the number of
-- rows in sight where the table's statistics lag behind: a limit that the planner can't see has it walk the primary key.
-- $1 shard, $2 rows, $3 bytes
select id, event_id, topic, key, type, aggregate_version, saga_id, step_name, headers, payload,
       (topic, key) in (select p.topic, p.key from :"schema".outbox_parked_key as p where p.shard = $1) as parked
from (
  select *, sum(octet_length(payload)) over (order by id rows unbounded preceding) - octet_length(payload) as bytes_before
  from (select * from :"schema".outbox_event where shard = $1 order by id limit (select $2::int)) as head) as next
where bytes_before < $3
order by id
