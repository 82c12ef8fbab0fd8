-- Takes leases that are free or have expired; the epoch grows, so whatever the last owner still sends is fenced off.
-- $1 owner, $2 lease in ms, $3 most shards
with free as materialized (
  select shard from :"schema".outbox_shard
  where expires_at is null or expires_at <= clock_timestamp()
  order by random()
  limit $3
  for update skip locked)
update :"schema".outbox_shard as s
set owner = $1, epoch = s.epoch + 1, expires_at = clock_timestamp() + make_interval(secs => $2::float8 / 1000)
from free
where s.shard = free.shard
returning s.shard::int as shard, s.epoch
