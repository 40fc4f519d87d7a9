-- Terms are prepared by package words, and their vectors are made of them. The vectors of
-- before have the same stems.
drop index run_words_of_records;
alter table run_words drop column text;
drop text search configuration guideway_words;
drop text search dictionary guideway_stem;
