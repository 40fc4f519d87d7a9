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

CREATE VIRTUAL TABLE checkpoint_words USING fts5 (scope, text, tokenize = 'porter unicode61');
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
