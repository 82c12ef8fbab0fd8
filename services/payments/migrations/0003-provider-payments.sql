-- Payments through the provider. A row is there before the provider is called, so that two commands can't pay for one
-- order; what the provider calls the payment is known after it.
alter table public.orders drop constraint orders_status_check;
alter table public.orders add constraint orders_status_check
  check (status in ('pending', 'paid', 'partially_refunded', 'refunded'));

alter table public.payment drop constraint payment_status_check;
alter table public.payment add constraint payment_status_check
  check (status in ('pending', 'charging', 'paid', 'declined', 'reversed'));
alter table public.payment alter column external_payment_id drop not null;
alter table public.payment add constraint payment_external_known
  check (external_payment_id is not null or status in ('charging', 'declined', 'reversed'));

-- One payment at a time, whatever command or key it comes under.
create unique index payment_live on public.payment (order_id) where status in ('charging', 'paid');

create table public.refund (
  id                 uuid          primary key default gen_random_uuid(),
  payment_id         uuid          not null references public.payment (id),
  order_id           uuid          not null references public.orders (id),
  provider           text          not null,
  external_refund_id text,
  amount             numeric(19,4) not null check (amount > 0),
  currency           text          not null check (currency ~ '^[A-Z]{3}$'),
  -- What is reserved counts as given back, until the provider says no.
  status             text          not null check (status in ('reserved', 'refunded', 'refused')),
  operation          text          not null,
  idempotency_key    text          not null,
  created_at         timestamptz   not null default now(),
  constraint refund_external unique (provider, external_refund_id),
  constraint refund_idempotency unique (order_id, operation, idempotency_key),
  constraint refund_external_known check (external_refund_id is not null or status <> 'refunded')
);
create index refund_payment on public.refund (payment_id);
