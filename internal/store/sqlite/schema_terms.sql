-- Terms are prepared by package words: a tokenizer only splits them at spaces. The table
-- words keeps no texts, because its rows are never deleted.
ALTER TABLE words RENAME TO old_words;
CREATE VIRTUAL TABLE words USING fts5 (scope, text, tokenize = 'ascii', content = '', columnsize = 0, detail = column);
ALTER TABLE checkpoint_words RENAME TO old_checkpoint_words;
CREATE VIRTUAL TABLE checkpoint_words USING fts5 (scope, text, tokenize = 'ascii');
INSERT INTO checkpoint_words (checkpoint_words, rank) VALUES ('secure-delete', 1);
