-- Rows to lock for aggregates that are new to the consumer: no version yet.
-- $1 consumer, $2 aggregates
insert into :"schema".aggregate_version (consumer_name, aggregate)
select $1, a.aggregate from unnest($2::text[]) as a (aggregate) order by a.aggregate
on conflict do nothing
