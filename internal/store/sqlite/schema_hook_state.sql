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
