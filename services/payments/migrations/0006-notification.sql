-- What customers are to be told; whoever sends it takes it from here.
create table public.notification (
  id          bigint      primary key generated always as identity,
  event_id    uuid        not null,
  order_id    uuid        not null,
  customer_id text        not null,
  subject     text        not null,
  created_at  timestamptz not null default now()
);
create index notification_order on public.notification (order_id);
