-- Deletes what was acknowledged, while the shard is still ours: the fence locks, so a take-over waits for us or we see it.
-- By id and never by range: an event with an id in between may have been committed since the read.
-- Not waiting for the disk: what a crash of the server brings back is sent again, as after any crash of a relay.
-- $1 shard, $2 owner, $3 epoch, $4 ids
with fence as materialized (
  select shard from :"schema".outbox_shard where shard = $1 and owner = $2 and epoch = $3 for share),
gone as (
  delete from :"schema".outbox_event
  where shard = $1 and id = any($4::bigint[]) and exists (select from fence)
  returning id)
select exists (select from fence) as owned, (select count(*)::int from gone) as settled,
       set_config('synchronous_commit', 'off', true)
