-- What lists show of documents. It stands in a table of its own: a row of
-- documents has its data in a chain of pages, which a column behind them would
-- have every list go along.
CREATE TABLE document_summaries (
  document  INTEGER PRIMARY KEY,
  -- The revision that it is of. A summary of another one counts for nothing.
  revision  INTEGER NOT NULL,
  dashboard BLOB
) STRICT;
