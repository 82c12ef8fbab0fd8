-- The ledger's own tables. It learns of orders and payments by events alone, and could live in another database.
create table public.ledger_entry (
  id             bigint        primary key generated always as identity,
  event_id       uuid          not null,
  order_id       uuid          not null,
  debit_account  text          not null,
  credit_account text          not null,
  amount         numeric(19,4) not null check (amount > 0),
  currency       text          not null check (currency ~ '^[A-Z]{3}$'),
  booked_at      timestamptz   not null default now(),
  check (debit_account <> credit_account)
);
create index ledger_entry_order on public.ledger_entry (order_id);

-- Debits less credits. In each currency all of them add up to zero.
create table public.account_balance (
  account  text          not null,
  currency text          not null,
  balance  numeric(30,4) not null,
  primary key (account, currency)
);
