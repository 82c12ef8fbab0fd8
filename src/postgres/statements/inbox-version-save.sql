-- $1 consumer, $2 aggregates, $3 versions, $4 whether events are held
update :"schema".aggregate_version as x
set version = e.version, held = e.held
from unnest($2::text[], $3::bigint[], $4::boolean[]) as e (aggregate, version, held)
where x.consumer_name = $1 and x.aggregate = e.aggregate
