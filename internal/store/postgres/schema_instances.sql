-- The processes that drive machine runs, with the time of their last sign of life in
-- milliseconds, and the runs that they drive.
create table instances (
  id   bytea primary key,
  seen bigint not null
) with (fillfactor = 50);
create table drives (
  run       bytea primary key,
  user_id   bytea not null,
  instance  bytea not null,
  attended  int not null,
  cancelled int not null default 0
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
