-- What is true of the whole store: "key" is the fingerprint of the key that its
-- runs are chained by.
CREATE TABLE facts (
  name  TEXT NOT NULL PRIMARY KEY,
  value BLOB NOT NULL
) STRICT, WITHOUT ROWID;
