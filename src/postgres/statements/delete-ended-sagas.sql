-- One bounded batch of the cleaner: sagas that ended long ago, with their ledgers.
-- $1 age in seconds, $2 batch size
with gone as (
  delete from :"schema".saga
  where ctid = any (array(
    select ctid from :"schema".saga
    where ended_at <= clock_timestamp() - make_interval(secs => $1)
    order by ended_at
    limit $2
    for update skip locked))
  returning saga_id),
ledger as (
  delete from :"schema".saga_step as s using gone where s.saga_id = gone.saga_id)
select from gone
