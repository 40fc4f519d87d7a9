package postgres

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/guideway-dev/guideway"
)

// The codes of the server (SQLSTATE) that are told apart.
const (
	codeUniqueViolation     = "23505"
	codeReadOnly            = "25006"
	codeInvalidPassword     = "28P01"
	codeInvalidUser         = "28000"
	codeUnknownDatabase     = "3D000"
	codeSerialization       = "40001"
	codeDeadlock            = "40P01"
	codeInsufficientRights  = "42501"
	codeUndefinedTable      = "42P01"
	codeDiskFull            = "53100"
	codeOutOfMemory         = "53200"
	codeTooManyConnections  = "53300"
	codeProgramLimit        = "54000"
	codeLockNotAvailable    = "55P03"
	codeQueryCanceled       = "57014"
	codeAdminShutdown       = "57P01"
	codeCrashShutdown       = "57P02"
	codeCannotConnectNow    = "57P03"
	codeDatabaseDropped     = "57P04"
	codeDataCorrupted       = "XX001"
	codeIndexCorrupted      = "XX002"
	classConnection         = "08"
	classCharacters         = "22021"
	classUntranslatable     = "22P05"
	classInsufficientThings = "53"
)

// sqlState gives the code of an error of the server.
func sqlState(err error) (string, bool) {
	var p *pgconn.PgError
	if errors.As(err, &p) {
		return p.Code, true
	}
	return "", false
}

func noRows(err error) bool { return errors.Is(err, pgx.ErrNoRows) }

// fate is what is known of a statement that failed.
type fate int

const (
	// final: nothing was done, and the same again would fail again.
	final fate = iota
	// passing: nothing was done, and it may go well in a moment.
	passing
	// unknown: the answer is lost, and with it whether anything was done.
	unknown
)

// fateOf judges an error of the driver.
func fateOf(err error) fate {
	var known *guideway.Error
	if errors.As(err, &known) {
		return final
	}
	if code, ok := sqlState(err); ok {
		switch code {
		case codeSerialization, codeDeadlock, codeCannotConnectNow, codeTooManyConnections:
			return passing
		case codeAdminShutdown, codeCrashShutdown:
			return unknown
		}
		if strings.HasPrefix(code, classConnection) {
			return unknown
		}
		return final
	}
	var connecting *pgconn.ConnectError
	if errors.As(err, &connecting) || pgconn.SafeToRetry(err) {
		return passing
	}
	if isNetwork(err) {
		return unknown
	}
	return final
}

// isNetwork says whether an error tells of a connection and nothing else.
func isNetwork(err error) bool {
	var n net.Error
	return errors.As(err, &n) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, context.DeadlineExceeded) || strings.HasSuffix(err.Error(), "conn closed")
}

// fault gives an error of the driver its code and the way out. Errors that have
// a code stay as they are.
func (s *Store) fault(what string, err error) error {
	var known *guideway.Error
	if errors.As(err, &known) {
		return err
	}
	switch {
	case errors.Is(err, context.Canceled):
		return guideway.Errorf(guideway.CodeUnavailable, "%s: the call was given up: %w", what, err)
	case fateOf(err) == unknown || errors.Is(err, context.DeadlineExceeded):
		return guideway.Errorf(guideway.CodeUnavailable, "%s: the PostgreSQL server at %s does not answer: %w", what, s.where, err).
			WithFix("check that the server runs and can be reached, then repeat the call")
	}
	if code, ok := sqlState(err); ok {
		return s.serverFault(what, code, err)
	}
	var connecting *pgconn.ConnectError
	if errors.As(err, &connecting) {
		return guideway.Errorf(guideway.CodeUnavailable, "%s: the PostgreSQL server at %s cannot be reached: %w", what, s.where, err).
			WithFix("check the host and port in the URL of the store, that the server runs, and sslmode")
	}
	return guideway.Errorf(guideway.CodeInternal, "%s: %w", what, err)
}

// explanation is what a code of the server means to the one who runs it.
type explanation struct {
	code    guideway.Code
	message string
	fix     string
}

// explanations are the codes that somebody can do something about.
func explanations() map[string]explanation {
	const unavailable, invalid = guideway.CodeUnavailable, guideway.CodeInvalid
	return map[string]explanation{
		codeInvalidPassword: {
			unavailable, "the password is wrong",
			"put the right one into PGPASSWORD, ~/.pgpass or the URL of the store",
		},
		codeInvalidUser: {
			unavailable, "the server does not let this user in",
			"check the user in the URL of the store, and pg_hba.conf",
		},
		codeUnknownDatabase: {
			unavailable, "the database does not exist",
			"make it with: createdb --encoding=UTF8 NAME, or name another one in the URL of the store",
		},
		codeInsufficientRights: {
			unavailable, "the user lacks a right",
			"make the user the owner of the database, or of the schema: alter schema NAME owner to USER",
		},
		codeUndefinedTable: {
			unavailable, "the tables are gone",
			"restore the database from its backup, then run: guideway runs verify",
		},
		codeDiskFull: {
			unavailable, "the server's disk is full",
			"make room on the server's disk, then repeat the call; nothing was stored",
		},
		codeOutOfMemory: {
			unavailable, "the server is out of memory",
			"give the server more memory, then repeat the call; nothing was stored",
		},
		codeTooManyConnections: {
			unavailable, "the server has no connection to spare",
			"raise max_connections of the server, or lower pool_max_conns in the URL of the store",
		},
		codeCannotConnectNow: {unavailable, "the server is starting or stopping", "repeat the call in a moment"},
		codeDatabaseDropped:  {unavailable, "the database was dropped", "restore it from its backup, then run: guideway runs verify"},
		codeLockNotAvailable: {
			unavailable, "another transaction holds what is needed",
			"repeat the call; if it stays, look for a long transaction in pg_stat_activity",
		},
		codeQueryCanceled: {unavailable, "the server ended the statement", "repeat the call; check statement_timeout of the user"},
		codeSerialization: {unavailable, "other transactions were in the way", "repeat the call"},
		codeDeadlock:      {unavailable, "other transactions were in the way", "repeat the call"},
		codeDataCorrupted: {
			unavailable, "the database is damaged",
			"restore it from its backup, then run: guideway runs verify",
		},
		codeIndexCorrupted: {
			unavailable, "an index of the database is damaged",
			"run: reindex database, then: guideway runs verify",
		},
		codeProgramLimit:    {invalid, "an id or a name is too long", "use a shorter one"},
		classCharacters:     {invalid, "a text has characters that cannot be stored", "take out what is not UTF-8"},
		classUntranslatable: {invalid, "a text has characters that cannot be stored", "take out NUL characters"},
	}
}

// serverFault explains an error that the server has answered with.
func (s *Store) serverFault(what, code string, err error) error {
	if code == codeReadOnly {
		return s.readOnly(err)
	}
	if x, ok := explanations()[code]; ok {
		return guideway.Errorf(x.code, "%s: %s (PostgreSQL at %s): %w", what, x.message, s.where, err).WithFix("%s", x.fix)
	}
	if strings.HasPrefix(code, classInsufficientThings) {
		return guideway.Errorf(guideway.CodeUnavailable, "%s: the server at %s is at a limit: %w", what, s.where, err).
			WithFix("look into the server's log, then repeat the call; nothing was stored")
	}
	return guideway.Errorf(guideway.CodeInternal, "%s: %w", what, err)
}

// readOnly says that the server takes no writes.
func (s *Store) readOnly(err error) error {
	fix := "name the primary in the URL of the store, or all servers with target_session_attrs=read-write; check default_transaction_read_only of the user"
	if err == nil {
		return guideway.Errorf(guideway.CodeUnavailable, "the PostgreSQL server at %s is read-only", s.where).WithFix("%s", fix)
	}
	return guideway.Errorf(guideway.CodeUnavailable, "the PostgreSQL server at %s is read-only: %w", s.where, err).WithFix("%s", fix)
}
