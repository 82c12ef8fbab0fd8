-- Two barriers behind the Idempotency-Key. They outlive the idempotency record, so a repeat that comes after the
-- record has expired, or under another key, still finds the payment instead of making a second one.
create table public.payment (
  id                  uuid          primary key default gen_random_uuid(),
  order_id            uuid          not null references public.orders (id),
  customer_id         text          not null,
  provider            text          not null,
  external_payment_id text          not null,
  amount              numeric(19,4) not null check (amount > 0),
  currency            text          not null check (currency ~ '^[A-Z]{3}$'),
  status              text          not null check (status in ('pending')),
  operation           text          not null,
  idempotency_key     text          not null,
  created_at          timestamptz   not null default now(),
  constraint payment_external unique (provider, external_payment_id),
  constraint payment_idempotency unique (order_id, operation, idempotency_key)
);
