create table public.stock (
  sku      text    primary key,
  on_hand  integer not null check (on_hand >= 0),
  reserved integer not null default 0 check (reserved between 0 and on_hand),
  -- Looked at when the sale is confirmed, and not before: it can happen in between.
  recalled boolean not null default false
);

-- The saga that does it has the same id.
create table public.checkout (
  id          uuid        primary key,
  order_id    uuid        not null references public.orders (id),
  customer_id text        not null,
  created_at  timestamptz not null default now()
);
