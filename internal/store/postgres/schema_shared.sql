-- The oldest version of these tables whose programs can use them as they are now.
alter table guideway_schema add column oldest int not null default 5;

-- What all instances of a deployment share: credentials, approvals and settings. Each
-- value has a MAC with a key that is derived from the key of the journal.
create table shared (
  name    text collate "C" primary key,
  value   text not null,
  touched timestamptz not null
);
