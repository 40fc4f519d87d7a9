-- Times are microseconds since 1970 in UTC. JSON is a BLOB: it comes back byte
-- for byte.

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

-- Terms are prepared by package words: a tokenizer only splits them at spaces. The table
-- keeps no texts, because its rows are never deleted. Ranks are computed without the lengths
-- of texts.
CREATE VIRTUAL TABLE words USING fts5 (scope, text, tokenize = 'ascii', content = '', columnsize = 0, detail = column);

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

-- What lists show of documents. It is a table of its own because a row of documents
-- has its data in a chain of pages, and reading a column after the data follows that
-- chain.
CREATE TABLE document_summaries (
  document  INTEGER PRIMARY KEY,
  dashboard BLOB
) STRICT;

-- Facts about the whole store: "key" is the fingerprint of the key that its runs are
-- chained by, "program" the version of the program that made the schema.
CREATE TABLE facts (
  name  TEXT NOT NULL PRIMARY KEY,
  value BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- What is known of checkpoints. Their contents are blobs, outside of this file:
-- all of this can be made anew from those.

-- num is the place in lists, and the row in checkpoint_words.
CREATE TABLE checkpoints (
  num      INTEGER PRIMARY KEY,
  id       TEXT NOT NULL UNIQUE,
  user     TEXT NOT NULL,
  session  TEXT NOT NULL,
  run      TEXT NOT NULL,
  run_seq  INTEGER NOT NULL,
  parent   TEXT NOT NULL,
  branch   INTEGER NOT NULL,
  number   INTEGER NOT NULL,
  link     INTEGER NOT NULL,
  workflow TEXT NOT NULL,
  project  TEXT NOT NULL,
  agent    TEXT NOT NULL,
  name     TEXT NOT NULL,
  tags     TEXT NOT NULL,
  kind     TEXT NOT NULL,
  created  INTEGER NOT NULL,
  bytes    INTEGER NOT NULL,
  tokens   INTEGER NOT NULL,
  sum      BLOB NOT NULL,
  blob     TEXT NOT NULL,
  stored   INTEGER NOT NULL,
  base     TEXT NOT NULL,
  key      TEXT NOT NULL,
  problem  TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX checkpoints_of_line ON checkpoints (user, session, number) WHERE kind <> 'piece';
CREATE INDEX checkpoints_in_line ON checkpoints (user, session, num);
CREATE INDEX checkpoints_of_user ON checkpoints (user, num);
CREATE INDEX checkpoints_of_workflow ON checkpoints (user, workflow, num);
CREATE INDEX checkpoints_of_project ON checkpoints (user, project, num);
CREATE INDEX checkpoints_by_parent ON checkpoints (parent);
CREATE INDEX checkpoints_by_base ON checkpoints (base);

-- What all checkpoints of a line are together, so that limits cost nothing.
CREATE TABLE checkpoint_lines (
  user     TEXT NOT NULL,
  session  TEXT NOT NULL,
  run      TEXT NOT NULL,
  workflow TEXT NOT NULL,
  project  TEXT NOT NULL,
  last     INTEGER NOT NULL,
  count    INTEGER NOT NULL,
  stored   INTEGER NOT NULL,
  bytes    INTEGER NOT NULL,
  touched  INTEGER NOT NULL,
  PRIMARY KEY (user, session)
) STRICT, WITHOUT ROWID;
CREATE INDEX checkpoint_lines_by_time ON checkpoint_lines (touched, user, session);

CREATE TABLE checkpoint_tags (
  tag TEXT NOT NULL,
  num INTEGER NOT NULL,
  PRIMARY KEY (tag, num)
) STRICT, WITHOUT ROWID;
CREATE INDEX checkpoint_tags_of ON checkpoint_tags (num);

CREATE VIRTUAL TABLE checkpoint_words USING fts5 (scope, text, tokenize = 'ascii');
-- What is deleted leaves nothing in the index.
INSERT INTO checkpoint_words (checkpoint_words, rank) VALUES ('secure-delete', 1);

-- What was deleted is not taken up again when a blob of it is found.
CREATE TABLE checkpoint_gone (
  id TEXT NOT NULL PRIMARY KEY,
  at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX checkpoint_gone_by_time ON checkpoint_gone (at);

CREATE TABLE checkpoint_audit (
  num        INTEGER PRIMARY KEY,
  at         INTEGER NOT NULL,
  action     TEXT NOT NULL,
  user       TEXT NOT NULL,
  session    TEXT NOT NULL,
  checkpoint TEXT NOT NULL,
  client     TEXT NOT NULL,
  detail     TEXT NOT NULL
) STRICT;
CREATE INDEX checkpoint_audit_of_user ON checkpoint_audit (user, num);

-- The state of hook scripts. expires is 0 for a value that does not expire. The index
-- has all that the size of a graph's state and the deletion of expired values need.
CREATE TABLE hook_state (
  graph   TEXT NOT NULL,
  scope   TEXT NOT NULL,
  key     BLOB NOT NULL,
  value   BLOB NOT NULL,
  bytes   INTEGER NOT NULL,
  expires INTEGER NOT NULL,
  UNIQUE (graph, scope, key)
) STRICT;
CREATE INDEX hook_state_sizes ON hook_state (graph, expires, bytes);

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
