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
