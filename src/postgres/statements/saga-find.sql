-- One saga as its starter sees it.
-- $1 saga id
select name, state, failure from :"schema".saga where saga_id = $1
