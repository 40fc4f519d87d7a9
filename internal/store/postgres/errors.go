package postgres

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"io"
	"net"
	"strings"
	"sync"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/guideway-dev/guideway"
)

// sqlState returns the code of an error of the server.
func sqlState(err error) (string, bool) {
	var p *pgconn.PgError
	if errors.As(err, &p) {
		return p.Code, true
	}
	return "", false
}

// outcome is the known result of a statement that returned an error.
type outcome int

const (
	// outcomeFailed means that nothing was done, and the call is not retried.
	outcomeFailed outcome = iota
	// outcomeTransient means that nothing was done, and a retry may succeed.
	outcomeTransient
	// outcomeUnknown means that the response is lost, and the statement may have been
	// executed.
	outcomeUnknown
)

// outcomeOf classifies an error of the driver.
func outcomeOf(err error) outcome {
	var known *guideway.Error
	if errors.As(err, &known) {
		return outcomeFailed
	}
	if code, ok := sqlState(err); ok {
		switch code {
		case pgerrcode.SerializationFailure, pgerrcode.DeadlockDetected, pgerrcode.CannotConnectNow, pgerrcode.TooManyConnections:
			return outcomeTransient
		case pgerrcode.AdminShutdown, pgerrcode.CrashShutdown:
			return outcomeUnknown
		}
		if pgerrcode.IsConnectionException(code) {
			return outcomeUnknown
		}
		return outcomeFailed
	}
	var connecting *pgconn.ConnectError
	if errors.As(err, &connecting) || pgconn.SafeToRetry(err) {
		return outcomeTransient
	}
	if isNetwork(err) {
		return outcomeUnknown
	}
	return outcomeFailed
}

// isNetwork reports whether an error only concerns the connection.
func isNetwork(err error) bool {
	var n net.Error
	return errors.As(err, &n) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, context.DeadlineExceeded) || strings.HasSuffix(err.Error(), "conn closed")
}

// wrapError adds a code and a fix to an error of the driver. Errors that have a code are
// returned unchanged.
func (s *Store) wrapError(what string, err error) error {
	var known *guideway.Error
	if errors.As(err, &known) {
		return err
	}
	switch {
	case errors.Is(err, context.Canceled):
		return guideway.Errorf(guideway.CodeUnavailable, "%s: the call was cancelled: %w", what, err)
	case outcomeOf(err) == outcomeUnknown || errors.Is(err, context.DeadlineExceeded):
		return guideway.Errorf(guideway.CodeUnavailable, "%s: the PostgreSQL server at %s does not answer: %w", what, s.where, err).
			WithFix("check that the server runs and can be reached, then repeat the call")
	}
	if code, ok := sqlState(err); ok {
		return s.wrapServerError(what, code, err)
	}
	var connecting *pgconn.ConnectError
	if errors.As(err, &connecting) {
		return guideway.Errorf(guideway.CodeUnavailable, "%s: the PostgreSQL server at %s cannot be reached: %w", what, s.where, err).
			WithFix("check that the server runs, and check the host, the port, sslmode and the certificate files in the URL of the store")
	}
	return guideway.Errorf(guideway.CodeInternal, "%s: %w", what, err)
}

// errorHelp is the explanation and the fix for an error of the server that a person can fix.
type errorHelp struct {
	// Code is CodeUnavailable if it is empty.
	Code         guideway.Code
	Message, Fix string
}

//go:embed errors.json
var errorsJSON []byte

// errorHelps returns the help by the codes of the server.
var errorHelps = sync.OnceValue(func() (helps map[string]errorHelp) {
	_ = json.Unmarshal(errorsJSON, &helps) // a test decodes the file, which is a part of the program
	return helps
})

// wrapServerError explains an error that the server returned.
func (s *Store) wrapServerError(what, code string, err error) error {
	if code == pgerrcode.ReadOnlySQLTransaction {
		return s.readOnlyError(err)
	}
	if x, ok := errorHelps()[code]; ok {
		return guideway.Errorf(cmp.Or(x.Code, guideway.CodeUnavailable), "%s: %s (PostgreSQL at %s): %w", what, x.Message, s.where, err).WithFix("%s", x.Fix)
	}
	if pgerrcode.IsInsufficientResources(code) {
		return guideway.Errorf(guideway.CodeUnavailable, "%s: the server at %s has reached a limit: %w", what, s.where, err).
			WithFix("check the server's log, then repeat the call; nothing was stored")
	}
	return guideway.Errorf(guideway.CodeInternal, "%s: %w", what, err)
}

// readOnlyError is returned if the server does not accept writes.
func (s *Store) readOnlyError(err error) error {
	fix := "name the primary in the URL of the store, or all servers with target_session_attrs=read-write; check default_transaction_read_only of the user"
	if err == nil {
		return guideway.Errorf(guideway.CodeUnavailable, "the PostgreSQL server at %s is read-only", s.where).WithFix("%s", fix)
	}
	return guideway.Errorf(guideway.CodeUnavailable, "the PostgreSQL server at %s is read-only: %w", s.where, err).WithFix("%s", fix)
}
