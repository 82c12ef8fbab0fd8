-- The lowest id of each shard is nearly its oldest event, and costs sixteen probes where a minimum would read the table.
-- The oldest snapshot is what keeps dead rows of this database from being removed; a role without pg_monitor sees
-- only its own sessions there.
-- $1 where counting stops
select
  (select extract(epoch from clock_timestamp() - min(e.created_at)) * 1000
   from :"schema".outbox_shard as s
   cross join lateral (
     select created_at from :"schema".outbox_event as e where e.shard = s.shard order by e.id limit 1) as e)::float8
    as oldest_unpublished_ms,
  (select count(*) from (select from :"schema".outbox_event limit $1) as counted)::int as unpublished,
  (select count(*) from :"schema".outbox_parked_key)::int as parked_keys,
  (select extract(epoch from clock_timestamp() - min(a.xact_start)) * 1000
   from pg_stat_activity as a
   where a.datname = current_database() and a.pid <> pg_backend_pid()
     and (a.backend_xmin is not null or a.backend_xid is not null))::float8 as oldest_snapshot_ms
