-- What the provider says about each charge, as its webhooks tell it: to be held against our own payments. They come in any
-- order, so a refund may be known before its charge.
create table public.provider_statement (
  provider  text          not null,
  charge_id text          not null,
  -- What we wrote on the charge: the id of our payment.
  reference text,
  charged   numeric(19,4),
  refunded  numeric(19,4) not null default 0,
  currency  text          not null,
  status    text          not null generated always as (
    case when charged is null then 'charge_unknown'
         when refunded = 0 then 'charged'
         when refunded < charged then 'partially_refunded'
         else 'refunded' end) stored,
  primary key (provider, charge_id)
);
