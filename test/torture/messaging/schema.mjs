/** The world beside idemkit's tables: what was committed, and what the ledger made of it. */
export const schema = `
create table account (key text primary key, n int not null default 0);
create table sent (
  event_id  uuid primary key,
  key       text not null,
  n         int not null,
  cents     bigint not null,
  -- When the event is to be sent again; what is due late comes behind later events of its key.
  resend_at timestamptz,
  resent    boolean not null default false
);
create index on sent (resend_at) where resend_at is not null and not resent;
create table effect (
  seq      bigint generated always as identity primary key,
  event_id uuid not null,
  key      text not null,
  n        int not null
);
create table entry (event_id uuid not null, account text not null, amount bigint not null);
`;
