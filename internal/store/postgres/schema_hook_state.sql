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
