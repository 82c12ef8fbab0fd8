-- One statement renews every lease of a relay, by the database's clock: `now()` would be the start of the transaction. A
-- lease that has expired and that nobody took is renewed like any other.
-- $1 owner, $2 lease in ms, $3 capacity, $4 shards, $5 epochs
with me as (
  insert into :"schema".outbox_relay (owner, capacity, expires_at)
  values ($1, $3, clock_timestamp() + make_interval(secs => $2::float8 / 1000))
  on conflict (owner) do update set expires_at = excluded.expires_at, capacity = excluded.capacity),
forgotten as (
  delete from :"schema".outbox_relay where owner <> $1 and expires_at < clock_timestamp() - interval '1 hour'),
held as (
  update :"schema".outbox_shard as s
  set expires_at = clock_timestamp() + make_interval(secs => $2::float8 / 1000)
  from unnest($4::smallint[], $5::bigint[]) as mine (shard, epoch)
  where s.shard = mine.shard and s.epoch = mine.epoch and s.owner = $1
  returning s.shard)
select array(select shard::int from held) as held,
       array(select capacity::int from :"schema".outbox_relay
             where owner <> $1 and expires_at > clock_timestamp()) as others
