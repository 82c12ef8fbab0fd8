-- What the handlers write. `idempotency_key` is not unique on purpose: it is how effects are counted afterwards.
create table account (
  id      int primary key,
  status  text not null
);
insert into account select n, 'open' from generate_series(0, 999) n;

create table payment (
  id              bigint generated always as identity primary key,
  account_id      int not null,
  order_id        text not null,
  amount          numeric(19, 4) not null,
  currency        text not null,
  idempotency_key text not null,
  created_at      timestamptz not null default now()
);

create table ledger_entry (
  id         bigint generated always as identity primary key,
  payment_id bigint not null,
  account_id int not null,
  amount     numeric(19, 4) not null
);

create table audit_entry (
  id         bigint generated always as identity primary key,
  payment_id bigint not null,
  what       text not null
);

-- The first seed's table of responses, and the peers' store: logged, as what must survive a crash has to be.
create table seed_response (
  key          text primary key,
  command_hash text not null,
  status       int not null,
  body         jsonb not null,
  expires_at   timestamptz not null
);
create table peer_record (
  key        text primary key,
  data       text not null,
  expires_at timestamptz not null
);
