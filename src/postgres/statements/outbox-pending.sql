-- Which shards have events. `order by id limit 1` is what makes every plan walk the primary key: without it a scan of the
-- whole table is chosen for a shard that has none.
-- $1 shards
select s.shard
from unnest($1::smallint[]) as s (shard)
cross join lateral (select e.id from :"schema".outbox_event as e where e.shard = s.shard order by e.id limit 1) as e
