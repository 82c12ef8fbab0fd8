-- Aggregates of these keys with events that wait behind a gap: a consumer that died between filling a gap and applying
-- them learns it from the redelivery.
-- $1 consumer, $2 topics, $3 keys
select distinct aggregate from :"schema".parked_event
where consumer_name = $1 and reason = 'gap' and (topic, key) in (select * from unnest($2::text[], $3::text[]))
