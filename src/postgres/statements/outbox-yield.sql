-- Gives leases back at once, for others to take.
-- $1 owner, $2 shards
update :"schema".outbox_shard set owner = null, expires_at = null where owner = $1 and shard = any($2::smallint[])
