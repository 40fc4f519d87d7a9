package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	driver "modernc.org/sqlite"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/atomicfile"
	"github.com/guideway-dev/guideway/internal/store/rows"
)

// applicationID is the application id in the header of a store: "gdw1".
const applicationID = 0x67647731

// openDatabases creates, checks and migrates the file and opens its connections, while it
// excludes other processes.
func (s *Store) openDatabases(ctx context.Context) error {
	const doing = "open the store"
	release, err := s.prepareFile(ctx)
	if err != nil {
		return s.wrapError(doing, err)
	}
	defer release()
	if s.writer, err = s.openDatabase("_txlock=immediate", "synchronous(FULL)", "secure_delete(1)", "journal_size_limit(67108864)", "cache_size(-1024)"); err != nil {
		return s.wrapError(doing, err)
	}
	s.writer.db.SetMaxOpenConns(1)
	if err := s.migrateToLatest(ctx); err != nil {
		return errors.Join(s.wrapError(doing, err), s.writer.closeAll())
	}
	if s.readers, err = s.openDatabase("", "query_only(1)"); err != nil {
		return errors.Join(s.wrapError(doing, err), s.writer.closeAll())
	}
	s.readers.db.SetMaxOpenConns(5) // a watch uses one of the connections
	s.readers.db.SetMaxIdleConns(5)
	s.readers.db.SetConnMaxIdleTime(time.Minute)
	return nil
}

// prepareFile creates the file if it does not exist, checks its header and locks it.
func (s *Store) prepareFile(ctx context.Context) (release func(), err error) {
	if s.o.Memory {
		return func() {}, nil
	}
	if err := atomicfile.MakeDir(filepath.Dir(s.o.Path)); err != nil {
		return nil, err
	}
	// With OFD locks, SQLite keeps its locks when other code in this process opens and
	// closes the file. On systems without OFD locks, fileLock still excludes other writers.
	_, _ = driver.OFDLocking(true)
	if err := atomicfile.EnsureFile(s.lock.file.Path()); err != nil {
		return nil, err
	}
	if release, err = s.lock.acquireLock(ctx); err != nil {
		return nil, err
	}
	if err = atomicfile.EnsureFile(s.o.Path); err == nil {
		err = checkHeader(s.o.Path)
	}
	if err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// checkHeader returns an error if a file is truncated within its header. SQLite would treat
// it as empty and overwrite it.
func checkHeader(path string) error {
	const header = 512
	info, err := os.Stat(path)
	if err == nil && info.Size() > 0 && info.Size() < header {
		return fmt.Errorf("the file ends within its header of %d bytes: %w", header, rows.ErrInvalidValue)
	}
	return err
}

// openDatabase returns a handle of the file, which opens it on first use.
func (s *Store) openDatabase(extra string, pragmas ...string) (*preparedDB, error) {
	pragmas = append(pragmas, fmt.Sprintf("busy_timeout(%d)", s.o.BusyTimeout.Milliseconds()))
	if s.o.Memory {
		extra += "&vfs=memdb"
	}
	db, err := sql.Open("sqlite", dataSource(s.o.Path, extra, pragmas...))
	if err != nil {
		return nil, err
	}
	return newPreparedDB(db), nil
}

// dataSource returns the name of a file for the driver. It contains the pragmas, because
// each connection needs them.
func dataSource(path, extra string, pragmas ...string) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") { // on Windows, the path starts with a volume name
		path = "/" + path
	}
	query := url.Values{"_pragma": pragmas}.Encode()
	if extra != "" {
		query += "&" + extra
	}
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + query
}

// migrateToLatest checks which program and version wrote the file and applies the missing
// migrations.
func (s *Store) migrateToLatest(ctx context.Context) error {
	id, version, err := s.readHeader(ctx)
	if err != nil {
		return err
	}
	steps := s.o.migrations
	if steps == nil {
		steps = migrations()
	}
	switch {
	case id != applicationID && (id != 0 || version != 0):
		return s.foreignFileError()
	case id == 0:
		if err := s.checkEmpty(ctx); err != nil {
			return err
		}
	case version > len(steps):
		return s.newerFileError(ctx, version, len(steps))
	}
	var mode string
	if err := s.writer.db.QueryRowContext(ctx, "PRAGMA journal_mode = WAL").Scan(&mode); err != nil {
		return err
	}
	if mode != "wal" && !s.o.Memory {
		return guideway.Errorf(guideway.CodeUnavailable, "the store %s cannot use a write-ahead log: its journal mode is %q", s.o.Path, mode).
			WithFix("choose a data directory on a local disk, not on a network file system")
	}
	for i, step := range steps[version:] {
		if err := s.applyMigration(ctx, version+i+1, step); err != nil {
			return err
		}
	}
	return nil
}

// readHeader reads the application id and the schema version from the header.
func (s *Store) readHeader(ctx context.Context) (id, version int, err error) {
	if err = s.writer.db.QueryRowContext(ctx, "PRAGMA application_id").Scan(&id); err != nil {
		return 0, 0, err
	}
	err = s.writer.db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version)
	return id, version, err
}

// checkEmpty returns an error if a file without an application id has tables.
func (s *Store) checkEmpty(ctx context.Context) error {
	var n int
	if err := s.writer.db.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&n); err != nil {
		return err
	}
	if n > 0 {
		return s.foreignFileError()
	}
	return nil
}

func (s *Store) foreignFileError() error {
	return guideway.Errorf(guideway.CodeUnavailable, "%s is the database of another program; the file was not changed", s.o.Path).
		WithFix("choose a different data directory, or move the file away")
}

// newerFileError returns the error for a schema that this version does not know, with the
// version of the program that can read it.
func (s *Store) newerFileError(ctx context.Context, version, known int) error {
	fix := "use the version of Guideway that wrote the file, or a later one"
	var program string
	err := s.writer.db.QueryRowContext(ctx, "SELECT CAST(value AS TEXT) FROM facts WHERE name = 'program'").Scan(&program)
	if err == nil && program != "" {
		fix = fmt.Sprintf("use the version of Guideway that wrote the file (%s), or a later one", program)
	}
	return guideway.Errorf(guideway.CodeUnavailable,
		"the store %s has the schema %d, but this version of Guideway supports schemas up to %d; the file was not changed", s.o.Path, version, known).
		WithFix("%s", fix)
}
