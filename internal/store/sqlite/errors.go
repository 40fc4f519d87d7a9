package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	driver "modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/blob"
	"github.com/guideway-dev/guideway/internal/store/rows"
)

// errNoRow is returned by queries without a result.
var errNoRow = sql.ErrNoRows

// isInvalidValue reports whether a row has a value that cannot be scanned. database/sql has
// no error type for it.
func isInvalidValue(err error) bool {
	return errors.Is(err, rows.ErrInvalidValue) || (err != nil && strings.Contains(err.Error(), "sql: Scan error"))
}

// wrapError adds the operation to an error and, if the cause is known, a code and a fix.
// Errors that have a code are returned unchanged.
func (s *Store) wrapError(doing string, err error) error {
	return wrapStoreError(s.o.Path, doing, err)
}

func wrapStoreError(path, doing string, err error) error {
	var ours *guideway.Error
	var theirs *driver.Error
	switch {
	case err == nil || errors.As(err, &ours):
		return err
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return guideway.Errorf(guideway.CodeUnavailable, "%s: %w", doing, err)
	case errors.As(err, &theirs):
		return wrapSQLiteError(path, doing, theirs)
	case blob.IsFull(err):
		return diskFullError(path, doing, err)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS), errors.Is(err, syscall.ENOTDIR):
		return notWritableError(path, doing, err)
	case isInvalidValue(err):
		return damagedError(path, doing, err)
	}
	return fmt.Errorf("%s in the store %s: %w", doing, path, err)
}

// wrapSQLiteError does the same as wrapStoreError for SQLite errors.
func wrapSQLiteError(path, doing string, err *driver.Error) error {
	switch err.Code() {
	case lib.SQLITE_CONSTRAINT_UNIQUE, lib.SQLITE_CONSTRAINT_PRIMARYKEY, lib.SQLITE_CONSTRAINT_ROWID:
		return guideway.Errorf(guideway.CodeConflict, "%s: an id or key is already in use: %w", doing, err)
	case lib.SQLITE_IOERR_CORRUPTFS:
		return damagedError(path, doing, err)
	}
	switch err.Code() & 0xFF {
	case lib.SQLITE_FULL:
		return diskFullError(path, doing, err)
	case lib.SQLITE_CORRUPT, lib.SQLITE_NOTADB, lib.SQLITE_FORMAT,
		lib.SQLITE_ERROR, lib.SQLITE_SCHEMA: // The statements are constants, so an invalid statement means that the schema is damaged.
		return damagedError(path, doing, err)
	case lib.SQLITE_READONLY, lib.SQLITE_CANTOPEN, lib.SQLITE_PERM, lib.SQLITE_AUTH:
		return notWritableError(path, doing, err)
	case lib.SQLITE_BUSY, lib.SQLITE_LOCKED, lib.SQLITE_PROTOCOL:
		return guideway.Errorf(guideway.CodeUnavailable, "%s: another process has locked the store %s: %w", doing, path, err).
			WithFix("try again; if it fails again, end the other process that has the file open")
	case lib.SQLITE_IOERR:
		return guideway.Errorf(guideway.CodeUnavailable, "%s: a disk error occurred in the store %s: %w", doing, path, err).
			WithFix("check whether the disk is full or failing, use a local disk, not a network file system, and try again")
	case lib.SQLITE_INTERRUPT:
		return guideway.Errorf(guideway.CodeUnavailable, "%s: %w", doing, fmt.Errorf("%w: %w", context.Canceled, err))
	case lib.SQLITE_TOOBIG:
		return guideway.Errorf(guideway.CodeTooLarge, "%s: the value is too large for the store: %w", doing, err).
			WithFix("shorten the value, or put the value into a file and store the path of the file")
	}
	return fmt.Errorf("%s in the store %s: %w", doing, path, err)
}

func diskFullError(path, doing string, err error) error {
	return guideway.Errorf(guideway.CodeUnavailable, "%s: no space is left for the store %s: %w", doing, path, blob.Full(err)).
		WithFix("free space on the disk of the store and try again; no acknowledged change is lost")
}

func notWritableError(path, doing string, err error) error {
	return guideway.Errorf(guideway.CodeUnavailable, "%s: the store %s cannot be opened or written: %w", doing, path, err).
		WithFix("make the file and its directory writable for this user, or choose a different data directory")
}

func damagedError(path, doing string, err error) error {
	return guideway.Errorf(guideway.CodeUnavailable, "%s: the store %s is damaged: %w", doing, path, err).
		WithFix("run `guideway doctor`; for guided runs, `guideway runs export --salvage DIR` writes what can still be read; then restore a backup of the file, or move it away to start a new store")
}

// IsDamaged reports whether an error means that the file is damaged or not a database.
func IsDamaged(err error) bool {
	var theirs *driver.Error
	if !errors.As(err, &theirs) {
		return isInvalidValue(err)
	}
	switch theirs.Code() & 0xFF {
	case lib.SQLITE_CORRUPT, lib.SQLITE_NOTADB, lib.SQLITE_FORMAT, lib.SQLITE_ERROR, lib.SQLITE_SCHEMA:
		return true
	}
	return theirs.Code() == lib.SQLITE_IOERR_CORRUPTFS
}
