-- What the rescuer takes up: operations whose attempt is dead, and uncertain ones whose next look is due.
-- $1 operations, $2 pause between looks at an uncertain one in seconds, $3 at most so many
select scope, operation, key, disposition, fingerprint, command
from :"schema".idempotency_record
where operation = any ($1)
  and command is not null
  and ((disposition = 'running' and lease_expires_at <= clock_timestamp())
    or (disposition = 'uncertain' and lease_expires_at <= clock_timestamp() - make_interval(secs => $2)))
order by lease_expires_at
limit $3
