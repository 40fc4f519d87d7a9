-- What was made of a run's events, so that it need not be made again: a cache.
create table gists (
  run  bytea primary key,
  seq  bigint not null,
  head bytea,
  data bytea,
  mac  bytea
) with (fillfactor = 50);
