-- breaking
-- Events that are committed and not yet acknowledged by the broker. The primary key is the only index: a relay reads one
-- shard from its lowest id, and every further index would be paid for by each insert and each delete.
-- The identity has no cache: ids drawn ahead by a session would put a later commit in front of an earlier one of its key.
create table :"schema".outbox_event (
  shard             smallint not null,
  id                bigint generated always as identity (cache 1),
  event_id          uuid not null,
  created_at        timestamptz not null default clock_timestamp(),
  aggregate_version bigint,
  topic             text collate "C" not null,
  key               text collate "C" not null,
  type              text collate "C" not null,
  saga_id           text collate "C",
  step_name         text collate "C",
  headers           text collate "C",
  payload           bytea not null,
  primary key (shard, id)
) with (
  -- Every row is deleted soon after it was inserted: vacuum by count, not by share of a table that is mostly empty, and
  -- never shrink the file, which would lock the writers out for a moment.
  autovacuum_vacuum_scale_factor = 0,
  autovacuum_vacuum_threshold = 20000,
  autovacuum_vacuum_cost_delay = 0,
  vacuum_truncate = false,
  toast.autovacuum_vacuum_scale_factor = 0,
  toast.autovacuum_vacuum_threshold = 20000,
  toast.vacuum_truncate = false
);

-- Who relays which shard. The epoch grows with each change of owner and is what a fence compares.
create table :"schema".outbox_shard (
  shard      smallint primary key,
  owner      uuid,
  epoch      bigint not null default 0,
  expires_at timestamptz
) with (fillfactor = 50);

insert into :"schema".outbox_shard (shard) select generate_series(0, 15);

-- The relays that run, so that each knows its fair share of the shards.
create table :"schema".outbox_relay (
  owner      uuid primary key,
  capacity   smallint not null,
  expires_at timestamptz not null
) with (fillfactor = 50);

-- Keys whose next event was refused for good; their events wait in outbox_held_event.
create table :"schema".outbox_parked_key (
  topic     text collate "C" not null,
  key       text collate "C" not null,
  shard     smallint not null,
  event_id  uuid not null,
  reason    text collate "C" not null,
  parked_at timestamptz not null default clock_timestamp(),
  primary key (topic, key)
);

create index outbox_parked_key_shard on :"schema".outbox_parked_key (shard);

-- The events of parked keys, out of the way of the relay's reads. They keep their ids, and so their order.
create table :"schema".outbox_held_event (
  shard             smallint not null,
  id                bigint not null,
  event_id          uuid not null,
  created_at        timestamptz not null,
  aggregate_version bigint,
  topic             text collate "C" not null,
  key               text collate "C" not null,
  type              text collate "C" not null,
  saga_id           text collate "C",
  step_name         text collate "C",
  headers           text collate "C",
  payload           bytea not null,
  primary key (topic, key, id)
);
