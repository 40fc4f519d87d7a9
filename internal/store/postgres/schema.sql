-- Whatever a caller chooses (ids, names, goals) is bytea: it comes back byte for
-- byte, NUL and what is not UTF-8 included, and no collation decides what is
-- equal. encode(id, 'escape') makes it readable.

-- The one row has the version of these tables, and the oldest version whose programs can use
-- them as they are now. The name of the table identifies them as those of a released guideway.
create table guideway_tables (
  version int not null,
  oldest  int not null
);
insert into guideway_tables values (0, 1);

create table definitions (
  hash    bytea primary key,
  text    bytea not null,
  created timestamptz not null default now()
);

create table runs (
  id           bytea primary key,
  user_id      bytea not null,
  client       bytea not null,
  workflow     bytea not null,
  name         bytea not null,
  version      bytea not null,
  hash         bytea not null,
  goal         bytea not null,
  project      bytea not null,
  project_path bytea not null,
  branch       bytea not null,
  commit_id    bytea not null,
  status       bytea not null,
  kind         bytea not null,
  step         bytea not null,
  title        bytea not null,
  person       boolean not null,
  done         bigint not null,
  parent       bytea not null,
  parent_seq   bigint not null,
  created      timestamptz not null,
  updated      timestamptz not null,
  seq          bigint not null,
  head         bytea,
  handle       bytea not null
) with (fillfactor = 80);
create index runs_by_update on runs (updated, id);
create index runs_by_user on runs (user_id, updated, id);

create table events (
  run       bytea not null,
  seq       bigint not null,
  at        timestamptz not null,
  kind      bytea not null,
  by_user   bytea not null,
  by_client bytea not null,
  via       bytea not null,
  data      bytea,
  mac       bytea,
  primary key (run, seq)
);

create table handles (
  token bytea primary key,
  run   bytea not null,
  seq   bigint not null
);

-- What a commit with a key ended with.
create table commands (
  run    bytea not null,
  key    bytea not null,
  seq    bigint not null,
  handle bytea not null,
  primary key (run, key)
);

-- The run that a user's request has made.
create table requests (
  user_id bytea not null,
  key     bytea not null,
  run     bytea not null,
  seq     bigint not null,
  handle  bytea not null,
  primary key (user_id, key)
);

create table snapshots (
  run   bytea primary key,
  seq   bigint not null,
  head  bytea,
  state bytea,
  mac   bytea
) with (fillfactor = 50);

-- What runs are found by. A commit adds rows and rewrites none, so that it costs
-- the same at the end of a long run; seq 0 is the words of the run's record. The
-- vector has the lexeme of the run's user besides, so that a search of one user
-- need not look at the rows of all others.
create table run_words (
  id     bigint generated always as identity primary key,
  run    bytea not null,
  seq    bigint not null,
  vector tsvector not null
);
-- A commit leaves its words in a list, and the one that makes it too long files
-- them all. A short list keeps that one quick, and searches too.
create index run_words_by_word on run_words using gin (vector) with (gin_pending_list_limit = 256);

-- Changes get their positions after they were committed, from whoever reads the
-- feed: a position that was given within the transaction could become visible
-- before a lower one, unless all transactions of all runs waited for each other.
create table outbox (
  id       bigint generated always as identity primary key,
  at       timestamptz not null,
  subject  text not null,
  op       text not null,
  user_id  bytea not null,
  item     bytea not null,
  workflow bytea not null,
  project  bytea not null,
  seq      bigint not null
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);

create table changes (
  pos      bigint primary key,
  at       timestamptz not null,
  subject  text not null,
  op       text not null,
  user_id  bytea not null,
  item     bytea not null,
  workflow bytea not null,
  project  bytea not null,
  seq      bigint not null
);

-- The one row says which positions have been given, and which are gone for good.
create table feed (
  id     boolean primary key default true check (id),
  last   bigint not null,
  pruned bigint not null
);
insert into feed (last, pruned) values (0, 0);

create table documents (
  n            bigint generated always as identity unique,
  user_id      bytea not null,
  project      bytea not null,
  workflow     bytea not null,
  id           bytea not null,
  project_path bytea not null,
  created      timestamptz not null,
  updated      timestamptz not null,
  revision     bigint not null,
  data         bytea not null,
  -- What lists show of the document; null where that is nothing.
  dashboard    bytea,
  deleted      timestamptz,
  -- The last write that changed the row, so that a writer who got no answer can
  -- see whether it was its own.
  write        uuid not null,
  primary key (user_id, project, workflow, id)
);
create index documents_by_user on documents (user_id, updated) where deleted is null;

create table document_log (
  n        bigint generated always as identity primary key,
  document bigint not null references documents (n),
  at       timestamptz not null,
  revision bigint not null,
  pointer  bytea not null,
  message  bytea not null
);
create index document_log_of_document on document_log (document, n);

-- What is large is mostly snapshots, written again and again: where the server
-- has lz4, a commit with one of 100 KB takes less than half the time.
do $$
begin
  if exists (select from pg_settings where name = 'default_toast_compression' and 'lz4' = any (enumvals)) then
    alter table snapshots alter column state set compression lz4;
    alter table events alter column data set compression lz4;
    alter table documents alter column data set compression lz4;
    alter table definitions alter column text set compression lz4;
  end if;
end
$$;

-- What is true of the whole store: 'key' is the fingerprint of the key that its
-- runs are chained by.
create table facts (
  name  text primary key,
  value bytea not null
);

-- What is known of checkpoints. n is the place in lists, vector the words that one
-- is found by, with a lexeme for its user.
create table checkpoints (
  n        bigint generated always as identity,
  id       bytea primary key,
  user_id  bytea not null,
  session  bytea not null,
  run      bytea not null,
  run_seq  bigint not null,
  parent   bytea not null,
  branch   boolean not null,
  number   bigint not null,
  link     bigint not null,
  workflow bytea not null,
  project  bytea not null,
  agent    bytea not null,
  name     bytea not null,
  tags     bytea[] not null,
  kind     bytea not null,
  created  timestamptz not null,
  bytes    bigint not null,
  tokens   bigint not null,
  sum      bytea not null,
  blob     bytea not null,
  stored   bigint not null,
  base     bytea not null,
  key      bytea not null,
  problem  bytea not null,
  vector   tsvector
);
create unique index checkpoints_of_line on checkpoints (user_id, session, number) where kind <> 'piece';
create index checkpoints_in_line on checkpoints (user_id, session, n);
create index checkpoints_by_n on checkpoints (n);
create index checkpoints_of_user on checkpoints (user_id, n);
create index checkpoints_of_workflow on checkpoints (user_id, workflow, n);
create index checkpoints_of_project on checkpoints (user_id, project, n);
create index checkpoints_by_parent on checkpoints (parent);
create index checkpoints_by_base on checkpoints (base);
create index checkpoints_by_tag on checkpoints using gin (tags);
create index checkpoints_by_words on checkpoints using gin (vector);

-- What all checkpoints of a line are together. Whoever changes a line holds its
-- row.
create table checkpoint_lines (
  user_id  bytea not null,
  session  bytea not null,
  run      bytea not null default '',
  workflow bytea not null default '',
  project  bytea not null default '',
  last     bigint not null default 0,
  count    bigint not null default 0,
  stored   bigint not null default 0,
  bytes    bigint not null default 0,
  touched  timestamptz not null default 'epoch',
  primary key (user_id, session)
) with (fillfactor = 70);
create index checkpoint_lines_by_time on checkpoint_lines (touched, user_id, session);

-- What was deleted is not taken up again when a blob of it is found.
create table checkpoint_gone (
  id bytea primary key,
  at timestamptz not null
);
create index checkpoint_gone_by_time on checkpoint_gone (at);

create table checkpoint_audit (
  n          bigint generated always as identity primary key,
  at         timestamptz not null,
  action     bytea not null,
  user_id    bytea not null,
  session    bytea not null,
  checkpoint bytea not null,
  client     bytea not null,
  detail     bytea not null
);
create index checkpoint_audit_of_user on checkpoint_audit (user_id, n);

-- Blobs are compressed, and perhaps encrypted, before they come here.
create table blobs (
  name     text primary key,
  data     bytea not null,
  size     bigint not null,
  modified timestamptz not null default clock_timestamp()
);
alter table blobs alter column data set storage external;

create table slots (
  key      text primary key,
  value    bytea not null,
  modified timestamptz not null default clock_timestamp()
);

-- The state of hook scripts. A value without a time in expires does not expire. The index
-- has all that the size of a graph's state and the deletion of expired values need.
create table hook_state (
  graph   bytea not null,
  scope   bytea not null,
  key     bytea not null,
  value   bytea not null,
  bytes   bigint not null,
  expires timestamptz,
  primary key (graph, scope, key)
) with (fillfactor = 50);
create index hook_state_sizes on hook_state (graph, expires) include (bytes);

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

-- What all instances of a deployment share: credentials, approvals and settings. Each
-- value has a MAC with a key that is derived from the key of the journal.
create table shared (
  name    text collate "C" primary key,
  value   text not null,
  touched timestamptz not null
);
