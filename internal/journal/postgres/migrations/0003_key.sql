-- What is true of the whole store: 'key' is the fingerprint of the key that its
-- runs are chained by.
create table facts (
  name  text primary key,
  value bytea not null
);
