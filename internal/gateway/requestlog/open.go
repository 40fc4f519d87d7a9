package requestlog

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	driver "modernc.org/sqlite"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/pause"
	"github.com/guideway-dev/guideway/internal/privatefile"
)

//go:embed schema.sql
var schemaSQL string

const (
	// applicationID is in the file's header: "gdwq". unreleasedID is in that of files
	// made before the first release: "gdwr".
	applicationID = 0x67647771
	unreleasedID  = 0x67647772
	// schemaVersion counts the changes of the schema.
	schemaVersion = 1
	// busyTime is how long a connection waits for another process.
	busyTime = 5 * time.Second
)

// Log is the record of requests in a file.
type Log struct {
	path string
	db   *sql.DB
}

// Open opens a file, which it makes, for this user alone, where there is none.
func Open(ctx context.Context, path string) (*Log, error) {
	l, err := open(ctx, path)
	if err != nil {
		return nil, l.fault("open the record of requests", err)
	}
	return l, nil
}

// Exists tells whether there is a file.
func Exists(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Size() > 0
}

func open(ctx context.Context, path string) (*Log, error) {
	l := &Log{path: path}
	if err := privatefile.MakeDir(filepath.Dir(path)); err != nil {
		return l, err
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case err == nil:
		if err := file.Close(); err != nil {
			return l, err
		}
	case !errors.Is(err, fs.ErrExist):
		return l, err
	}
	// Locks then last even if somebody in this process opens and closes the file.
	// Not every system has them.
	_, _ = driver.OFDLocking(true)
	if l.db, err = sql.Open("sqlite", dataSource(path)); err != nil {
		return l, err
	}
	// One connection writes; the others look. They go when nobody uses them.
	l.db.SetMaxOpenConns(4)
	l.db.SetMaxIdleConns(1)
	l.db.SetConnMaxIdleTime(time.Minute)
	if err := l.prepareWhenFree(ctx); err != nil {
		return l, errors.Join(err, l.db.Close())
	}
	return l, nil
}

// dataSource names the file for the driver. Pragmas stand in it because each
// connection needs them. A crash may lose the last entries, and nothing else.
func dataSource(path string) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") { // a volume
		path = "/" + path
	}
	pragmas := url.Values{"_pragma": {
		fmt.Sprintf("busy_timeout(%d)", busyTime.Milliseconds()), "auto_vacuum(2)", "synchronous(NORMAL)",
		"cache_size(-1024)", "journal_size_limit(8388608)",
	}}
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?_txlock=immediate&" + pragmas.Encode()
}

// prepareWhenFree prepares the file. SQLite's busy timeout does not cover the change
// to a write-ahead log, so where several processes make the file at once, those that
// find it busy try again.
func (l *Log) prepareWhenFree(ctx context.Context) error {
	for begun := time.Now(); ; {
		err := l.prepare(ctx)
		if !hasCode(err, codeBusy) || time.Since(begun) > busyTime || pause.For(ctx, 10*time.Millisecond) != nil {
			return err
		}
	}
}

// SQLite's codes of errors.
const (
	codeBusy         = 5
	codeCorrupt      = 11
	codeNotADatabase = 26
)

// hasCode reports whether an error is SQLite's with one of some codes.
func hasCode(err error, codes ...int) bool {
	var failure *driver.Error
	return errors.As(err, &failure) && slices.Contains(codes, failure.Code()&0xff)
}

// prepare makes the tables of a new file, and refuses one that is another's.
func (l *Log) prepare(ctx context.Context) error {
	var id, version int
	if err := l.db.QueryRowContext(ctx, "SELECT a.application_id, u.user_version FROM pragma_application_id a, pragma_user_version u").Scan(&id, &version); err != nil {
		return err
	}
	switch {
	case id == applicationID && version == schemaVersion:
		return nil
	case id == applicationID:
		return guideway.Errorf(guideway.CodeUnavailable, "the record of requests %s has the schema %d, this version of guideway knows %d", l.path, version, schemaVersion).
			WithFix("use a later guideway, or move the file away: a new one is begun")
	case id == unreleasedID:
		return guideway.Errorf(guideway.CodeUnavailable, "%s is a record of requests that a development version of guideway made before the first release; this version cannot open it; it was left as it is", l.path).
			WithFix("move the file away: a new one is begun; the guideway that made it still reads it")
	case id != 0 || version != 0:
		return guideway.Errorf(guideway.CodeUnavailable, "%s is another program's database; it was left as it is", l.path).WithFix("move the file away")
	}
	if _, err := l.db.ExecContext(ctx, "PRAGMA journal_mode = WAL"); err != nil {
		return err
	}
	return l.within(ctx, func(tx *sql.Tx) error {
		// Another process may have been faster.
		if err := tx.QueryRowContext(ctx, "PRAGMA application_id").Scan(&id); err != nil || id == applicationID {
			return err
		}
		_, err := tx.ExecContext(ctx, schemaSQL+fmt.Sprintf(";PRAGMA application_id = %d; PRAGMA user_version = %d", applicationID, schemaVersion))
		return err
	})
}

// within does something in a transaction that writes.
func (l *Log) within(ctx context.Context, do func(*sql.Tx) error) error {
	tx, err := l.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // behind a commit it does nothing
	if err := do(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// Close closes the file.
func (l *Log) Close() error { return l.db.Close() }

// fault gives an error the form that a person gets.
func (l *Log) fault(doing string, err error) error {
	switch {
	case err == nil:
		return nil
	case guideway.ErrorCode(err) != guideway.CodeInternal, errors.Is(err, context.Canceled):
		return err
	}
	fix := "look at the disk and at the rights of the file"
	if hasCode(err, codeNotADatabase, codeCorrupt) {
		fix = "the file is damaged; move it away: a new one is begun, and nothing but the record is lost"
	}
	return guideway.Errorf(guideway.CodeUnavailable, "%s: %s: %w", doing, l.path, err).WithFix("%s", fix)
}
