CREATE TABLE requests (
	num       INTEGER PRIMARY KEY AUTOINCREMENT,
	id        TEXT NOT NULL UNIQUE,
	at        INTEGER NOT NULL, -- microseconds since 1970
	took      INTEGER NOT NULL, -- microseconds
	user      TEXT NOT NULL,
	client    TEXT NOT NULL,
	token     TEXT NOT NULL,
	method    TEXT NOT NULL,
	upstream  TEXT NOT NULL,
	project   TEXT NOT NULL,
	tool      TEXT NOT NULL,
	status    TEXT NOT NULL,
	error     TEXT NOT NULL,
	bytes_in  INTEGER NOT NULL,
	bytes_out INTEGER NOT NULL,
	hooks     TEXT NOT NULL, -- ids between commas: ,one,two,
	trace     TEXT NOT NULL,
	graphs    TEXT NOT NULL, -- JSON, or empty
	request   TEXT NOT NULL, -- JSON, or empty
	response  TEXT NOT NULL, -- JSON, or empty
	held      TEXT NOT NULL DEFAULT '' -- id of a held call, or empty
);
CREATE INDEX requests_at ON requests (at);
CREATE INDEX requests_failed ON requests (num) WHERE status <> 'ok';
CREATE INDEX requests_hooked ON requests (num) WHERE hooks <> '';

-- What was not written: there was no room in a queue, or no way to write.
CREATE TABLE losses (
	at    INTEGER NOT NULL,
	count INTEGER NOT NULL
);
