-- The processes that drive machine runs, with the time of their last sign of life in
-- milliseconds; the runs that they drive; and the jobs that are due at a time.
CREATE TABLE instances (
  id   TEXT PRIMARY KEY,
  seen INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE drives (
  run       TEXT PRIMARY KEY,
  user      TEXT NOT NULL,
  instance  TEXT NOT NULL,
  attended  INTEGER NOT NULL,
  cancelled INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
CREATE TABLE jobs (
  n    INTEGER PRIMARY KEY AUTOINCREMENT,
  run  TEXT NOT NULL UNIQUE,
  user TEXT NOT NULL,
  due  INTEGER NOT NULL
) STRICT;
CREATE INDEX jobs_by_time ON jobs (due);
