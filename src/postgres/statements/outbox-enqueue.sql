-- Locks every key in one order, and only then draws the ids: so within a key id order is commit order, because the locks
-- are given back after the commit has become visible (PROTOCOLS section 3). `k` is materialised before the first row of
-- the join, and the identity is evaluated above the sort.
-- $1 locks, $2 shards, $3 event ids, $4 topics, $5 keys, $6 types, $7 payloads, $8 headers, $9 aggregate versions,
-- $10 saga ids, $11 step names
with k as materialized (
  select count(pg_advisory_xact_lock(s.h)) as n
  from (select distinct h from unnest($1::bigint[]) as h order by 1 offset 0) as s)
insert into :"schema".outbox_event
  (shard, event_id, topic, key, type, payload, headers, aggregate_version, saga_id, step_name)
select e.shard, e.event_id, e.topic, e.key, e.type, e.payload, e.headers, e.aggregate_version, e.saga_id, e.step_name
from unnest($2::smallint[], $3::uuid[], $4::text[], $5::text[], $6::text[], $7::bytea[], $8::text[], $9::bigint[],
            $10::text[], $11::text[]) with ordinality
  as e (shard, event_id, topic, key, type, payload, headers, aggregate_version, saga_id, step_name, o), k
where k.n >= 0
order by e.o
