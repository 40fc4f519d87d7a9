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
)

// errNone is what queries say when nothing is there, errGarbled marks a value
// that this package cannot have written.
var (
	errNone    = sql.ErrNoRows
	errGarbled = errors.New("a value is garbled")
)

// isGarbled says whether a row has a value that cannot be there. database/sql
// has no type for it.
func isGarbled(err error) bool {
	return errors.Is(err, errGarbled) || (err != nil && strings.Contains(err.Error(), "sql: Scan error"))
}

// fault turns an error into one that says what was being done, with a code and
// the way out. Errors that have a code are left as they are.
func (s *Store) fault(doing string, err error) error {
	return fault(s.o.Path, doing, err)
}

func fault(path, doing string, err error) error {
	var ours *guideway.Error
	var theirs *driver.Error
	switch {
	case err == nil || errors.As(err, &ours):
		return err
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return guideway.Errorf(guideway.CodeUnavailable, "%s: %w", doing, err)
	case errors.As(err, &theirs):
		return ofCode(path, doing, theirs)
	case isFull(err):
		return full(path, doing, err)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS), errors.Is(err, syscall.ENOTDIR):
		return notWritable(path, doing, err)
	case isGarbled(err):
		return damaged(path, doing, err)
	}
	return fmt.Errorf("%s in the store %s: %w", doing, path, err)
}

// ofCode is fault for what SQLite says.
func ofCode(path, doing string, err *driver.Error) error {
	switch err.Code() {
	case lib.SQLITE_CONSTRAINT_UNIQUE, lib.SQLITE_CONSTRAINT_PRIMARYKEY, lib.SQLITE_CONSTRAINT_ROWID:
		return guideway.Errorf(guideway.CodeConflict, "%s: it is there already: %w", doing, err)
	case lib.SQLITE_IOERR_CORRUPTFS:
		return damaged(path, doing, err)
	}
	switch err.Code() & 0xFF {
	case lib.SQLITE_FULL:
		return full(path, doing, err)
	case lib.SQLITE_CORRUPT, lib.SQLITE_NOTADB, lib.SQLITE_FORMAT,
		lib.SQLITE_ERROR, lib.SQLITE_SCHEMA: // all statements are constants: where one does not fit, it is the schema that is damaged
		return damaged(path, doing, err)
	case lib.SQLITE_READONLY, lib.SQLITE_CANTOPEN, lib.SQLITE_PERM, lib.SQLITE_AUTH:
		return notWritable(path, doing, err)
	case lib.SQLITE_BUSY, lib.SQLITE_LOCKED, lib.SQLITE_PROTOCOL:
		return guideway.Errorf(guideway.CodeUnavailable, "%s: another program holds the store %s: %w", doing, path, err).
			WithFix("try again; if it lasts, end the other program that has the file open")
	case lib.SQLITE_IOERR:
		return guideway.Errorf(guideway.CodeUnavailable, "%s: the disk failed under the store %s: %w", doing, path, err).
			WithFix("see whether the disk is full or failing; a network file system will not do; then try again")
	case lib.SQLITE_INTERRUPT:
		return guideway.Errorf(guideway.CodeUnavailable, "%s: %w", doing, errors.Join(context.Canceled, err))
	case lib.SQLITE_TOOBIG:
		return guideway.Errorf(guideway.CodeTooLarge, "%s: it is too large for the store: %w", doing, err)
	}
	return fmt.Errorf("%s in the store %s: %w", doing, path, err)
}

func isFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EFBIG) || errors.Is(err, syscall.EDQUOT)
}

func full(path, doing string, err error) error {
	return guideway.Errorf(guideway.CodeUnavailable, "%s: there is no room for the store %s: %w", doing, path, blob.Full(err)).
		WithFix("free space on that disk and try again; nothing that was acknowledged is lost")
}

func notWritable(path, doing string, err error) error {
	return guideway.Errorf(guideway.CodeUnavailable, "%s: the store %s cannot be opened for writing: %w", doing, path, err).
		WithFix("make the file and its directory writable for this user, or choose another data directory")
}

func damaged(path, doing string, err error) error {
	return guideway.Errorf(guideway.CodeUnavailable, "%s: the store %s is damaged: %w", doing, path, err).
		WithFix("run `guideway doctor`; `guideway runs export --salvage DIR` writes what can still be read; then restore a backup of the file, or move it away to begin anew")
}

// IsDamaged says whether an error tells of a file that is damaged, or no
// database at all.
func IsDamaged(err error) bool {
	var theirs *driver.Error
	if !errors.As(err, &theirs) {
		return isGarbled(err)
	}
	switch theirs.Code() & 0xFF {
	case lib.SQLITE_CORRUPT, lib.SQLITE_NOTADB, lib.SQLITE_FORMAT, lib.SQLITE_ERROR, lib.SQLITE_SCHEMA:
		return true
	}
	return theirs.Code() == lib.SQLITE_IOERR_CORRUPTFS
}
