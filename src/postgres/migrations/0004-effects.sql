-- breaking
-- External mode: an operation that calls other systems keeps its record from the claim on. Until its end the record is
-- 'running' (leased to an attempt) or 'uncertain' (nobody knows whether a call took effect), and never expires.
alter table :"schema".idempotency_record
  add column attempt_id       uuid,
  add column attempt          integer,
  add column lease_expires_at timestamptz,
  add column command          bytea;

-- What the rescuer and operators look for; finished records are not in it, so it costs the atomic mode nothing.
create index idempotency_record_unfinished on :"schema".idempotency_record (lease_expires_at)
  where disposition in ('running', 'uncertain');

-- The ledger of calls: the intent commits before a call, its result after. 'absent' is an operator's or a recovery's
-- word that the call never took effect.
create table :"schema".effect (
  operation_id uuid not null,
  name         text collate "C" not null,
  derived_key  text collate "C" not null,
  attempt_id   uuid not null,
  state        text collate "C" not null check (state in ('intent', 'done', 'refused', 'absent')),
  result       bytea,
  intended_at  timestamptz not null default clock_timestamp(),
  ended_at     timestamptz,
  primary key (operation_id, name)
);
