package requestlog

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	driver "modernc.org/sqlite"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/blob/seal"
	"github.com/guideway-dev/guideway/internal/platform/atomicfile"
	"github.com/guideway-dev/guideway/internal/platform/ctxsleep"
)

//go:embed schema.sql
var schemaSQL string

const (
	// applicationID is in the file's header: "gdr1".
	applicationID = 0x67647231
	// schemaVersion is the version of the schema.
	schemaVersion = 1
	// busyTime is the maximum time that a connection waits for another process.
	busyTime = 5 * time.Second
)

// Log is a request log in a file.
type Log struct {
	// Texts encrypts errors, the effects of hooks and recorded bodies. If nil, they are not
	// encrypted.
	Texts *seal.Texts

	path string
	db   *sql.DB
}

// place returns the place of an encrypted value.
func place(id, column string) string { return "recorded request " + id + " (" + column + ")" }

// Open opens a file. If it does not exist, Open creates it, readable only by this user.
func Open(ctx context.Context, path string) (*Log, error) {
	l, err := openDatabase(ctx, path)
	if err != nil {
		return nil, l.wrapError("open the request log", err)
	}
	return l, nil
}

// Exists reports whether the file exists and is not empty.
func Exists(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Size() > 0
}

func openDatabase(ctx context.Context, path string) (*Log, error) {
	l := &Log{path: path}
	if err := atomicfile.MakeDir(filepath.Dir(path)); err != nil {
		return l, err
	}
	err := atomicfile.EnsureFile(path)
	if err != nil {
		return l, err
	}
	// With OFD locks, a lock survives if other code in this process opens and closes the
	// file. Not every system has them.
	_, _ = driver.OFDLocking(true)
	if l.db, err = sql.Open("sqlite", dataSource(path)); err != nil {
		return l, err
	}
	// One connection writes, and the others read. Idle connections are closed.
	l.db.SetMaxOpenConns(4)
	l.db.SetMaxIdleConns(1)
	l.db.SetConnMaxIdleTime(time.Minute)
	if err := l.prepareWhenFree(ctx); err != nil {
		return l, errors.Join(err, l.db.Close())
	}
	return l, nil
}

// dataSource returns the data source name of the file. It contains the pragmas because each
// connection needs them. With these pragmas, a crash can lose the last entries, but nothing
// else.
func dataSource(path string) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") { // the path begins with a Windows volume
		path = "/" + path
	}
	pragmas := url.Values{"_pragma": {
		fmt.Sprintf("busy_timeout(%d)", busyTime.Milliseconds()), "auto_vacuum(2)", "synchronous(NORMAL)", "secure_delete(1)",
		"cache_size(-1024)", "journal_size_limit(8388608)",
	}}
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?_txlock=immediate&" + pragmas.Encode()
}

// prepareWhenFree prepares the file. SQLite's busy timeout does not cover the change to a
// write-ahead log, so prepareWhenFree retries while another process creates the same file.
func (l *Log) prepareWhenFree(ctx context.Context) error {
	for begun := time.Now(); ; {
		err := l.prepareTables(ctx)
		if !hasCode(err, codeBusy) || time.Since(begun) > busyTime || ctxsleep.For(ctx, 10*time.Millisecond) != nil {
			return err
		}
	}
}

// SQLite error codes.
const (
	codeBusy         = 5
	codeCorrupt      = 11
	codeNotADatabase = 26
)

// hasCode reports whether an error is a SQLite error with one of the codes.
func hasCode(err error, codes ...int) bool {
	var failure *driver.Error
	return errors.As(err, &failure) && slices.Contains(codes, failure.Code()&0xff)
}

// prepareTables creates the tables of a new file, and returns an error for a file of
// another program or of an incompatible version.
func (l *Log) prepareTables(ctx context.Context) error {
	var id, version int
	if err := l.db.QueryRowContext(ctx, "SELECT a.application_id, u.user_version FROM pragma_application_id a, pragma_user_version u").Scan(&id, &version); err != nil {
		return err
	}
	switch {
	case id == applicationID && version == schemaVersion:
		return nil
	case id == applicationID:
		return guideway.Errorf(guideway.CodeUnavailable, "the request log %s has schema version %d, but this version of Guideway supports only %d", l.path, version, schemaVersion).
			WithFix("use the version of Guideway that created the file, or move the file away to start a new log")
	case id != 0 || version != 0:
		return guideway.Errorf(guideway.CodeUnavailable, "%s is the database of another program; the file was not changed", l.path).WithFix("move the file away")
	}
	if _, err := l.db.ExecContext(ctx, "PRAGMA journal_mode = WAL"); err != nil {
		return err
	}
	return l.inTransaction(ctx, func(tx *sql.Tx) error {
		// Another process may have created the tables first.
		if err := tx.QueryRowContext(ctx, "PRAGMA application_id").Scan(&id); err != nil || id == applicationID {
			return err
		}
		_, err := tx.ExecContext(ctx, schemaSQL+fmt.Sprintf(";PRAGMA application_id = %d; PRAGMA user_version = %d", applicationID, schemaVersion))
		return err
	})
}

// inTransaction runs a function in a write transaction.
func (l *Log) inTransaction(ctx context.Context, do func(*sql.Tx) error) error {
	tx, err := l.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // no effect after a commit
	if err := do(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// Close closes the file.
func (l *Log) Close() error { return l.db.Close() }

// wrapError adds the operation and the next action to an error.
func (l *Log) wrapError(doing string, err error) error {
	switch {
	case err == nil:
		return nil
	case guideway.ErrorCode(err) != guideway.CodeInternal, errors.Is(err, context.Canceled):
		return err
	}
	fix := "check the disk and the permissions of the file"
	switch {
	case hasCode(err, codeBusy):
		fix = "try again: another process is using the file"
	case hasCode(err, codeNotADatabase, codeCorrupt):
		fix = "move the damaged file away to start a new log; only the old log is lost"
	}
	return guideway.Errorf(guideway.CodeUnavailable, "%s: %s: %w", doing, l.path, err).WithFix("%s", fix)
}
