-- breaking
-- A saga is a named sequence of steps; its row is leased to the runner that works on it.
create table :"schema".saga (
  saga_id          uuid primary key,
  name             text collate "C" not null,
  state            text collate "C" not null
                     check (state in ('running', 'compensating', 'uncertain', 'committed', 'compensated')),
  -- What an uncertain saga goes back to.
  resume_state     text collate "C" check (resume_state in ('running', 'compensating')),
  input            bytea not null,
  failure          bytea,
  tries            integer not null default 0,
  attempt_id       uuid,
  lease_expires_at timestamptz not null default '-infinity',
  wake_at          timestamptz not null default clock_timestamp(),
  -- Set by a reply, so that a runner that goes to sleep at the same moment wakes up again.
  woken            boolean not null default false,
  deadline_at      timestamptz not null default 'infinity',
  created_at       timestamptz not null default clock_timestamp(),
  ended_at         timestamptz
);

create index saga_due on :"schema".saga (wake_at) where state in ('running', 'compensating', 'uncertain');
create index saga_ended on :"schema".saga (ended_at) where ended_at is not null;

-- The ledger of steps, of the runner's own and of participants that take part by message. 'waiting' has sent its command;
-- 'blocked' is an action whose compensation came first.
create table :"schema".saga_step (
  -- Empty for the runner; a participant's name, since both may share a database.
  participant text collate "C" not null,
  saga_id     uuid not null,
  step_name   text collate "C" not null,
  direction   text collate "C" not null check (direction in ('action', 'compensation')),
  derived_key text collate "C" not null,
  state       text collate "C" not null
                check (state in ('intent', 'waiting', 'done', 'refused', 'absent', 'blocked')),
  result      bytea,
  intended_at timestamptz not null default clock_timestamp(),
  ended_at    timestamptz,
  primary key (saga_id, step_name, direction, participant)
);
