-- What was made of a run's events, so that it need not be made again: a cache.
CREATE TABLE gists (
  run  TEXT NOT NULL PRIMARY KEY,
  seq  INTEGER NOT NULL,
  head BLOB,
  data BLOB,
  mac  BLOB
) STRICT;
