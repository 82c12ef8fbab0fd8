-- breaking
-- The record of a finished command: logged, since an unlogged table forgets every key in a crash.
-- Collation "C": keys are compared as bytes, alike on every server and faster than by a locale.
-- 'running' and 'uncertain' are the external mode's, see 0004. An enum and not a check: a check's expression is read and prepared again for every row that is inserted.
create type :"schema".disposition as enum ('keep', 'refuse', 'running', 'uncertain');

create table :"schema".idempotency_record (
  scope        text collate "C" not null,
  operation    text collate "C" not null,
  key          text collate "C" not null,
  operation_id uuid not null,
  fingerprint  bytea not null,
  disposition  :"schema".disposition not null,
  status       smallint check (status between 200 and 999),
  headers      json not null,
  body         bytea not null,
  created_at   timestamptz not null default now(),
  expires_at   timestamptz not null,
  primary key (scope, operation, key)
);

create index idempotency_record_expires_at on :"schema".idempotency_record (expires_at);
