-- $1 consumer, $2 event id, $3 topic, $4 key, $5 type, $6 payload, $7 headers, $8 aggregate version, $9 saga id,
-- $10 step name, $11 the event id as it came, $12 reason, $13 error, $14 aggregate behind whose gap it waits,
-- $15 with which version
insert into :"schema".parked_event as x
  (consumer_name, event_id, topic, key, type, payload, headers, aggregate_version, saga_id, step_name,
   original_event_id, reason, error, aggregate, waiting_version)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
on conflict (consumer_name, event_id) do update set
  reason          = excluded.reason,
  error           = excluded.error,
  aggregate       = excluded.aggregate,
  waiting_version = excluded.waiting_version
