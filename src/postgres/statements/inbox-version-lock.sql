-- Who decides by a version holds its row until the end of the transaction; sorted, against deadlocks.
-- $1 consumer, $2 aggregates
select aggregate, version, held from :"schema".aggregate_version
where consumer_name = $1 and aggregate = any ($2::text[])
order by aggregate
for update
