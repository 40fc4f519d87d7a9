-- Times are microseconds since 1970 in UTC. JSON is a BLOB: it comes back byte
-- for byte.

-- Which version of the program has made which step, to say so to an older one.
CREATE TABLE migrations (
  number  INTEGER PRIMARY KEY,
  program TEXT NOT NULL,
  at      INTEGER NOT NULL
) STRICT;

CREATE TABLE definitions (
  hash TEXT NOT NULL PRIMARY KEY,
  text BLOB NOT NULL
) STRICT;

-- num is half of the row numbers in words: see search.go.
CREATE TABLE runs (
  num            INTEGER PRIMARY KEY,
  id             TEXT NOT NULL UNIQUE,
  user           TEXT NOT NULL,
  client         TEXT NOT NULL,
  workflow       TEXT NOT NULL,
  name           TEXT NOT NULL,
  version        TEXT NOT NULL,
  hash           TEXT NOT NULL,
  goal           TEXT NOT NULL,
  project        TEXT NOT NULL,
  project_path   TEXT NOT NULL,
  project_branch TEXT NOT NULL,
  project_commit TEXT NOT NULL,
  status         TEXT NOT NULL,
  kind           TEXT NOT NULL,
  step           TEXT NOT NULL,
  title          TEXT NOT NULL,
  person         INTEGER NOT NULL,
  done           INTEGER NOT NULL,
  parent         TEXT NOT NULL,
  parent_seq     INTEGER NOT NULL,
  created        INTEGER NOT NULL,
  updated        INTEGER NOT NULL,
  seq            INTEGER NOT NULL,
  head           BLOB,
  handle         TEXT NOT NULL
) STRICT;
CREATE INDEX runs_of_user ON runs (user, updated, id);
CREATE INDEX runs_by_time ON runs (updated, id);
CREATE INDEX runs_waiting ON runs (user, updated, id) WHERE person = 1;

-- Events name their run by its id: they tell what they are even where the rest
-- of a damaged file is gone.
CREATE TABLE events (
  run       TEXT NOT NULL,
  seq       INTEGER NOT NULL,
  at        INTEGER NOT NULL,
  kind      TEXT NOT NULL,
  by_user   TEXT NOT NULL,
  by_client TEXT NOT NULL,
  by_via    TEXT NOT NULL,
  data      BLOB,
  mac       BLOB,
  UNIQUE (run, seq)
) STRICT;

CREATE TABLE handles (
  token TEXT NOT NULL PRIMARY KEY,
  run   TEXT NOT NULL,
  seq   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What a key of a command has led to.
CREATE TABLE commands (
  run    TEXT NOT NULL,
  key    TEXT NOT NULL,
  seq    INTEGER NOT NULL,
  handle TEXT NOT NULL,
  PRIMARY KEY (run, key)
) STRICT, WITHOUT ROWID;

-- What a request id of a user has led to.
CREATE TABLE requests (
  user   TEXT NOT NULL,
  key    TEXT NOT NULL,
  run    TEXT NOT NULL,
  seq    INTEGER NOT NULL,
  handle TEXT NOT NULL,
  PRIMARY KEY (user, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE snapshots (
  run   TEXT NOT NULL PRIMARY KEY,
  seq   INTEGER NOT NULL,
  head  BLOB,
  state BLOB,
  mac   BLOB
) STRICT;

-- Rows are only ever added: one for each commit that brings words. Ranks are
-- reckoned without the lengths of texts, so columnsize is left out.
CREATE VIRTUAL TABLE words USING fts5 (scope, text, tokenize = 'porter unicode61', columnsize = 0);

CREATE TABLE documents (
  num          INTEGER PRIMARY KEY,
  user         TEXT NOT NULL,
  project      TEXT NOT NULL,
  workflow     TEXT NOT NULL,
  id           TEXT NOT NULL,
  project_path TEXT NOT NULL,
  created      INTEGER NOT NULL,
  updated      INTEGER NOT NULL,
  revision     INTEGER NOT NULL,
  deleted      INTEGER,
  data         BLOB NOT NULL,
  UNIQUE (user, project, workflow, id)
) STRICT;
CREATE INDEX documents_of_user ON documents (user, updated) WHERE deleted IS NULL;

CREATE TABLE document_log (
  num      INTEGER PRIMARY KEY,
  document INTEGER NOT NULL,
  at       INTEGER NOT NULL,
  revision INTEGER NOT NULL,
  pointer  TEXT NOT NULL,
  message  TEXT NOT NULL
) STRICT;
CREATE INDEX document_log_of ON document_log (document, num);

-- AUTOINCREMENT: a position is never used again, even when all rows are gone.
CREATE TABLE feed (
  pos      INTEGER PRIMARY KEY AUTOINCREMENT,
  at       INTEGER NOT NULL,
  subject  TEXT NOT NULL,
  op       TEXT NOT NULL,
  user     TEXT NOT NULL,
  id       TEXT NOT NULL,
  workflow TEXT NOT NULL,
  project  TEXT NOT NULL,
  seq      INTEGER NOT NULL
) STRICT;
