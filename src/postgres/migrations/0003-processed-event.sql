-- That an event took effect, one row for each consumer (R-DIST-IDEM-2): written first in the transaction of its effects.
-- Partitioned by event_id, because the order of UUIDv7 is the order of time: a day expires by TRUNCATE, without a dead
-- tuple. Maintenance makes the days ahead; a row whose day has no partition goes to the default one.
create table :"schema".processed_event (
  event_id      uuid not null,
  consumer_name text collate "C" not null,
  processed_at  timestamptz not null default now(),
  primary key (event_id, consumer_name)
) partition by range (event_id);

create table :"schema".processed_event_default partition of :"schema".processed_event default;
create index processed_event_default_processed_at on :"schema".processed_event_default (processed_at);

-- Ids that are no UUIDv7 are recorded under derived ones that begin with ff. They have a partition of their own, so that
-- making a day, which locks and reads the default partition, never waits for them.
create table :"schema".processed_event_derived partition of :"schema".processed_event
  for values from ('ff000000-0000-0000-0000-000000000000') to (maxvalue);
create index processed_event_derived_processed_at on :"schema".processed_event_derived (processed_at);

-- Up to which time of an id the records are gone: written with the TRUNCATE, read by every delivery.
create table :"schema".processed_event_horizon (
  singleton      boolean primary key default true check (singleton),
  expired_before timestamptz not null
);
insert into :"schema".processed_event_horizon (expired_before) values ('-infinity');

-- Failures of handlers so far; a row exists only between a first failure and the event's outcome.
create table :"schema".event_attempt (
  consumer_name text collate "C" not null,
  event_id      uuid not null,
  attempts      integer not null,
  error         text not null,
  updated_at    timestamptz not null default now(),
  primary key (consumer_name, event_id)
);

create table :"schema".dead_letter (
  consumer_name     text collate "C" not null,
  event_id          uuid not null,
  topic             text collate "C" not null,
  key               text collate "C" not null,
  type              text collate "C" not null,
  payload           bytea not null,
  headers           json not null,
  aggregate_version bigint,
  saga_id           text,
  step_name         text,
  original_event_id text not null,
  reason            text collate "C" not null,
  error             text,
  attempts          integer not null,
  created_at        timestamptz not null default clock_timestamp(),
  primary key (consumer_name, event_id)
);
create index dead_letter_created_at on :"schema".dead_letter (consumer_name, created_at);

-- A key that is held: its events are stored in parked_event until it is released.
create table :"schema".parked_key (
  consumer_name text collate "C" not null,
  topic         text collate "C" not null,
  key           text collate "C" not null,
  parked_at     timestamptz not null default clock_timestamp(),
  primary key (consumer_name, topic, key)
);

-- reason: poison (the one that failed), follower (behind it), gap (an earlier version of its aggregate is missing).
create table :"schema".parked_event (
  id                bigint generated always as identity primary key,
  consumer_name     text collate "C" not null,
  event_id          uuid not null,
  topic             text collate "C" not null,
  key               text collate "C" not null,
  type              text collate "C" not null,
  payload           bytea not null,
  headers           json not null,
  aggregate_version bigint,
  saga_id           text,
  step_name         text,
  original_event_id text not null,
  reason            text collate "C" not null check (reason in ('poison', 'follower', 'gap')),
  aggregate         text collate "C",
  waiting_version   bigint,
  error             text,
  parked_at         timestamptz not null default clock_timestamp(),
  unique (consumer_name, event_id),
  check ((reason = 'gap') <= (aggregate is not null and waiting_version is not null))
);
create index parked_event_of_key on :"schema".parked_event (consumer_name, topic, key, id);
create index parked_event_of_aggregate on :"schema".parked_event (consumer_name, aggregate, waiting_version)
  where reason = 'gap';

-- The version that a consumer has applied last; null before the first. held: events behind a gap are parked.
-- Updated in place: the fill factor leaves room for it.
create table :"schema".aggregate_version (
  consumer_name text collate "C" not null,
  aggregate     text collate "C" not null,
  version       bigint,
  held          boolean not null default false,
  primary key (consumer_name, aggregate)
) with (fillfactor = 80);
