-- A likely replay in one autocommit read.
-- $1 scope, $2 operation, $3 key
select operation_id, fingerprint, disposition, status, headers, body
from :"schema".idempotency_record
where scope = $1 and operation = $2 and key = $3 and expires_at > now()
