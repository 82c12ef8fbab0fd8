-- The opening statement of a delivery: bounds the transaction, records the events, and tells which of them are first. An
-- event that another transaction is recording makes this wait for its end, bounded by lock_timeout: the bounds are set by
-- the rows that the insert reads. Sorted, since batches that insert in different orders deadlock.
-- Keys that are parked are locked for share, so that a release can't end while a follower is being parked. What waits
-- behind a gap of these keys is told, because a consumer may have died between filling a gap and applying what waited.
-- Lists travel as one text each: quoting hundreds of array elements costs more than the insert.
-- $1 consumer, $2 event ids with commas between them, $3 idle timeout in ms, $4 lock timeout in ms,
-- $5 JSON array of [topic, key]
with bounds as materialized (
  select set_config('idle_in_transaction_session_timeout', $3, true) as idle,
         case when current_setting('lock_timeout') = '0' then set_config('lock_timeout', $4, true) end as lock
), recorded as (
  insert into :"schema".processed_event (event_id, consumer_name)
  select e.event_id, $1 from bounds, unnest(string_to_array($2, ',')::uuid[]) as e (event_id) order by e.event_id
  on conflict do nothing
  returning event_id
), keys as materialized (
  select k ->> 0 as topic, k ->> 1 as key from json_array_elements($5::json) as k
), parked as materialized (
  select p.topic, p.key from :"schema".parked_key as p
  where p.consumer_name = $1 and (p.topic, p.key) in (select topic, key from keys)
  for share
)
select (select string_agg(event_id::text, ',') from recorded) as recorded,
       array(select topic from parked) as parked_topics,
       array(select key from parked) as parked_keys,
       array(
         select distinct g.aggregate from :"schema".parked_event as g
         where g.consumer_name = $1 and g.reason = 'gap' and (g.topic, g.key) in (select topic, key from keys)
       ) as gaps,
       extract(epoch from h.expired_before)::float8 * 1000 as expired_before_ms,
       extract(epoch from clock_timestamp())::float8 * 1000 as now_ms
from :"schema".processed_event_horizon as h
