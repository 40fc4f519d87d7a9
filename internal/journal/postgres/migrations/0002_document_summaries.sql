-- What lists show of documents, and the revision that it is of. A summary of
-- another one counts for nothing.
alter table documents add column dashboard bytea;
alter table documents add column summarised bigint;
