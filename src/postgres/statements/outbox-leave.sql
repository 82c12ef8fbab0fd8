-- The end of a relay: it no longer counts when the shards are shared out.
-- $1 owner
with gone as (delete from :"schema".outbox_relay where owner = $1)
update :"schema".outbox_shard set owner = null, expires_at = null where owner = $1
