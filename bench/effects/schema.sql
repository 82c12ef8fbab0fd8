-- What a careful person would write by hand: an operation with a lease, its calls, and the charge.
create table operation (
  scope            text not null,
  name             text not null,
  key              text not null,
  operation_id     uuid not null unique,
  fingerprint      bytea not null,
  state            text not null,
  answer           bytea,
  attempt_id       uuid,
  lease_expires_at timestamptz,
  command          bytea,
  expires_at       timestamptz not null,
  created_at       timestamptz not null default now(),
  primary key (scope, name, key)
);
create index operation_due on operation (lease_expires_at) where state = 'running';
create index operation_expired on operation (expires_at);

create table call (
  operation_id uuid not null,
  name         text not null,
  derived_key  text not null,
  state        text not null,
  result       bytea,
  intended_at  timestamptz not null default now(),
  ended_at     timestamptz,
  primary key (operation_id, name)
);

create table charge (
  id         bigint generated always as identity primary key,
  customer   text not null,
  amount     numeric(19,4) not null,
  charge_id  text not null,
  created_at timestamptz not null default now()
);

-- A saga and its steps, by hand as well.
create table hand_saga (
  saga_id          uuid primary key,
  state            text not null,
  attempt_id       uuid,
  lease_expires_at timestamptz not null default '-infinity',
  wake_at          timestamptz not null default now(),
  input            bytea not null
);
create index hand_saga_due on hand_saga (wake_at) where state = 'running';
create table hand_step (
  saga_id     uuid not null,
  step        text not null,
  direction   text not null,
  derived_key text not null,
  state       text not null,
  result      bytea,
  intended_at timestamptz not null default clock_timestamp(),
  ended_at    timestamptz,
  primary key (saga_id, step, direction)
);
