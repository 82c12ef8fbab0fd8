-- Tells relays which shards have something new, after the commit and never inside the caller's transaction: NOTIFY takes
-- a lock of the whole cluster until its commit.
-- $1 channel, $2 payload
select pg_notify($1, $2)
