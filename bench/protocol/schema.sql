-- What the variants write to. The record of idemkit is made by its own migration; these are the ones it is compared with.
create table payment (id bigserial primary key, key text not null, amount int not null);

-- Claimed first, answered later: by an update in the same transaction, or in a second one.
create table claimed_record (
  scope text collate "C" not null, operation text collate "C" not null, key text collate "C" not null,
  operation_id uuid not null, fingerprint bytea not null, state text not null default 'running',
  status smallint, headers json, body bytea,
  created_at timestamptz not null default now(), expires_at timestamptz not null,
  primary key (scope, operation, key)
);
create index claimed_record_expires_at on claimed_record (expires_at);
