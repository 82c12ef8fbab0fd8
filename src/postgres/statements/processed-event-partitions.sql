-- The days that have a partition, the database's clock, and how far records are gone already.
-- $1 schema
select extract(epoch from clock_timestamp())::float8 * 1000 as now_ms,
       extract(epoch from h.expired_before)::float8 * 1000 as expired_before_ms,
       array(
         select child.relname::text
         from pg_catalog.pg_inherits as i
         join pg_catalog.pg_class as child on child.oid = i.inhrelid
         join pg_catalog.pg_class as parent on parent.oid = i.inhparent
         join pg_catalog.pg_namespace as n on n.oid = parent.relnamespace
         where parent.relname = 'processed_event' and n.nspname = $1
         order by 1) as names
from :"schema".processed_event_horizon as h
