create table public.orders (
  id          uuid          primary key default gen_random_uuid(),
  customer_id text          not null,
  status      text          not null check (status in ('pending')),
  total       numeric(19,4) not null check (total > 0),
  currency    text          not null check (currency ~ '^[A-Z]{3}$'),
  created_at  timestamptz   not null default now()
);

create table public.order_item (
  order_id   uuid          not null references public.orders (id) on delete cascade,
  position   integer       not null,
  sku        text          not null,
  quantity   integer       not null check (quantity > 0),
  unit_price numeric(19,4) not null check (unit_price > 0),
  primary key (order_id, position)
);
