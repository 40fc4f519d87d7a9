package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	driver "modernc.org/sqlite"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/atomicfile"
)

// The application ids in a file's header.
const (
	// applicationID is that of a store: "gdws".
	applicationID = 0x67647773
	// unreleasedID is that of stores made before the first release: "gdwy".
	unreleasedID = 0x67647779
)

// prepare makes the file fit to work with, while no other process does.
func (s *Store) prepare(ctx context.Context) error {
	const doing = "open the store"
	if err := atomicfile.MakeDir(filepath.Dir(s.o.Path)); err != nil {
		return s.fault(doing, err)
	}
	// SQLite's locks then last even if somebody in this process opens and
	// closes the file. Not every system has them; the file lock remains.
	_, _ = driver.OFDLocking(true)
	release, err := s.lock.acquire(ctx)
	if err != nil {
		return s.fault(doing, err)
	}
	defer release()
	if err := createPrivate(s.o.Path); err != nil {
		return s.fault(doing, err)
	}
	if err := wantHeader(s.o.Path); err != nil {
		return s.fault(doing, err)
	}
	if s.writer, err = s.connect("_txlock=immediate", "synchronous(FULL)", "journal_size_limit(67108864)", "cache_size(-1024)"); err != nil {
		return s.fault(doing, err)
	}
	s.writer.db.SetMaxOpenConns(1)
	if err := s.bringUpToDate(ctx); err != nil {
		return errors.Join(s.fault(doing, err), s.writer.close())
	}
	if s.readers, err = s.connect("", "query_only(1)"); err != nil {
		return errors.Join(s.fault(doing, err), s.writer.close())
	}
	s.readers.db.SetMaxOpenConns(5) // one of them may watch
	s.readers.db.SetMaxIdleConns(5)
	s.readers.db.SetConnMaxIdleTime(time.Minute)
	return nil
}

// createPrivate makes an empty file for this user alone, where there is none.
// SQLite gives the files beside it the same mode.
func createPrivate(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return file.Close()
}

// wantHeader refuses a file that was cut off within its header. SQLite would
// take it for an empty one and write over it.
func wantHeader(path string) error {
	const header = 512
	info, err := os.Stat(path)
	if err == nil && info.Size() > 0 && info.Size() < header {
		return fmt.Errorf("it has only %d bytes: %w", info.Size(), errGarbled)
	}
	return err
}

// connect gives a handle to the file; it opens when it is first used.
func (s *Store) connect(extra string, pragmas ...string) (*statements, error) {
	pragmas = append(pragmas, fmt.Sprintf("busy_timeout(%d)", s.o.BusyTimeout.Milliseconds()))
	db, err := sql.Open("sqlite", dataSource(s.o.Path, extra, pragmas...))
	if err != nil {
		return nil, err
	}
	return newStatements(db), nil
}

// dataSource names a file for the driver. Pragmas stand in it because each
// connection needs them.
func dataSource(path, extra string, pragmas ...string) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") { // a volume
		path = "/" + path
	}
	query := url.Values{"_pragma": pragmas}.Encode()
	if extra != "" {
		query += "&" + extra
	}
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + query
}

// bringUpToDate sees whose file it is and makes the steps that it lacks.
func (s *Store) bringUpToDate(ctx context.Context) error {
	id, version, err := s.identity(ctx)
	if err != nil {
		return err
	}
	steps := s.o.steps
	if steps == nil {
		steps = schemaSteps()
	}
	switch {
	case id == unreleasedID:
		return s.unreleased(version)
	case id != applicationID && (id != 0 || version != 0):
		return s.foreign()
	case id == 0:
		if err := s.wantEmpty(ctx); err != nil {
			return err
		}
	case version > len(steps):
		return s.newer(ctx, version, len(steps))
	}
	var mode string
	if err := s.writer.db.QueryRowContext(ctx, "PRAGMA journal_mode = WAL").Scan(&mode); err != nil {
		return err
	}
	if mode != "wal" {
		return guideway.Errorf(guideway.CodeUnavailable, "the store %s cannot keep a write-ahead log: its journal mode is %q", s.o.Path, mode).
			WithFix("choose a data directory on a local disk: a network file system will not do")
	}
	for i, step := range steps[version:] {
		if err := s.migrate(ctx, version+i+1, step); err != nil {
			return err
		}
	}
	return nil
}

// identity reads from the header whose file it is, and of which version.
func (s *Store) identity(ctx context.Context) (id, version int, err error) {
	if err = s.writer.db.QueryRowContext(ctx, "PRAGMA application_id").Scan(&id); err != nil {
		return 0, 0, err
	}
	err = s.writer.db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version)
	return id, version, err
}

// wantEmpty refuses a file that has no mark of any program, but tables.
func (s *Store) wantEmpty(ctx context.Context) error {
	var n int
	if err := s.writer.db.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&n); err != nil {
		return err
	}
	if n > 0 {
		return s.foreign()
	}
	return nil
}

func (s *Store) foreign() error {
	return guideway.Errorf(guideway.CodeUnavailable, "%s is the database of another program; the file was not changed", s.o.Path).
		WithFix("choose another data directory, or move that file away")
}

// unreleased refuses a store that was made before the first release.
func (s *Store) unreleased(version int) error {
	return guideway.Errorf(guideway.CodeUnavailable,
		"%s is a store that a development version of guideway made before the first release (application id gdwy, schema %d); this version cannot open it; it was left as it is", s.o.Path, version).
		WithFix("move the file away to start a new store; to keep runs, first export them with the guideway that made the file (guideway runs export RUN)")
}

// newer says which version can read a file that this one cannot.
func (s *Store) newer(ctx context.Context, version, known int) error {
	var program string
	err := s.writer.db.QueryRowContext(ctx, "SELECT CAST(value AS TEXT) FROM facts WHERE name = 'program'").Scan(&program)
	if err != nil || program == "" {
		program = "a newer version"
	}
	return guideway.Errorf(guideway.CodeUnavailable,
		"the store %s has the schema %d, this version of guideway knows %d; it was left as it is", s.o.Path, version, known).
		WithFix("use the guideway that has written it (%s) or a later one", program)
}
