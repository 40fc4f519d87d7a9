package requestlog

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/guideway-dev/guideway/internal/contexts/blob/seal"
)

const (
	insertSQL = `INSERT OR IGNORE INTO requests
	(id, at, took, user, client, token, method, upstream, project, tool, status, error, bytes_in, bytes_out, hooks, trace, graphs, request, response, held)
	VALUES `
	rowSQL = "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
	// rowsPerInsert is the number of entries that one statement inserts: with one entry per
	// statement, most of the time is spent on round trips to the database.
	rowsPerInsert = 16
)

// Write writes a batch completely or not at all.
func (l *Log) Write(ctx context.Context, b Batch) error {
	return l.wrapError("write the request log", l.inTransaction(ctx, func(tx *sql.Tx) error {
		if err := l.insertEntries(ctx, tx, b.Entries); err != nil {
			return err
		}
		for id, graphs := range b.Graphs {
			text, err := l.sealJSON(ctx, place(id, "graphs"), graphs, len(graphs) == 0)
			if err != nil {
				return err
			}
			if _, err := tx.ExecContext(ctx, "UPDATE requests SET graphs = ? WHERE id = ?", text, id); err != nil {
				return err
			}
		}
		if b.Dropped == 0 {
			return nil
		}
		_, err := tx.ExecContext(ctx, "INSERT INTO losses (at, count) VALUES (?, ?)", time.Now().UnixMicro(), b.Dropped)
		return err
	}))
}

func (l *Log) insertEntries(ctx context.Context, tx *sql.Tx, entries []*Entry) error {
	for _, size := range []int{rowsPerInsert, 1} {
		if len(entries) < size {
			continue
		}
		statement, err := tx.PrepareContext(ctx, insertSQL+strings.Repeat(rowSQL+", ", size-1)+rowSQL)
		if err != nil {
			return err
		}
		defer statement.Close()
		var values []any
		for ; len(entries) >= size; entries = entries[size:] {
			values = values[:0]
			for _, e := range entries[:size] {
				if values, err = l.appendRow(ctx, values, e); err != nil {
					return err
				}
			}
			if _, err := statement.ExecContext(ctx, values...); err != nil {
				return err
			}
		}
	}
	return nil
}

// appendRow appends the values of an entry.
func (l *Log) appendRow(ctx context.Context, values []any, e *Entry) ([]any, error) {
	graphs, err := l.sealJSON(ctx, place(e.ID, "graphs"), e.Graphs, len(e.Graphs) == 0)
	if err != nil {
		return nil, err
	}
	request, err := l.sealJSON(ctx, place(e.ID, "request"), e.Request, e.Request == nil)
	if err != nil {
		return nil, err
	}
	response, err := l.sealJSON(ctx, place(e.ID, "response"), e.Response, e.Response == nil)
	if err != nil {
		return nil, err
	}
	reason, err := l.sealText(ctx, place(e.ID, "error"), e.Error)
	if err != nil {
		return nil, err
	}
	hooks := ""
	if len(e.Hooks) > 0 {
		hooks = "," + strings.Join(e.Hooks, ",") + ","
	}
	return append(values, e.ID, e.At.UnixMicro(), int64(e.MS*1000), e.User, e.Client, e.Token, e.Method, e.Upstream,
		e.Project, e.Tool, string(e.Status), reason, e.BytesIn, e.BytesOut, hooks, e.TraceID, graphs, request, response, e.HeldCall), nil
}

// sealText returns a text, or the bytes of its encrypted form.
func (l *Log) sealText(ctx context.Context, place, text string) (any, error) {
	stored, err := l.Texts.Seal(ctx, []byte(text), place)
	if err != nil || seal.IsSealed(stored) {
		return stored, err
	}
	return text, nil
}

func (l *Log) sealJSON(ctx context.Context, place string, v any, empty bool) (any, error) {
	if empty {
		return "", nil
	}
	text, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("encode an entry: %w", err)
	}
	return l.sealText(ctx, place, string(text))
}

// pruneStep is the number of entries that one transaction removes: other processes can
// write in between.
const pruneStep = 2000

// Prune removes the entries before a time, and then the oldest entries until the file uses
// at most the given number of bytes; a zero time or size means unlimited. It returns the
// number of removed entries.
func (l *Log) Prune(ctx context.Context, before time.Time, most int64) (int64, error) {
	var gone int64
	if !before.IsZero() {
		n, err := l.removeWhere(ctx, "at < ?", before.UnixMicro())
		if err != nil {
			return n, l.wrapError("prune the request log", err)
		}
		gone += n
		if _, err := l.db.ExecContext(ctx, "DELETE FROM losses WHERE at < ?", before.UnixMicro()); err != nil {
			return gone, l.wrapError("prune the request log", err)
		}
	}
	for most > 0 {
		used, err := l.usedBytes(ctx)
		if err != nil || used <= most {
			return gone, l.wrapError("prune the request log", err)
		}
		var count int64
		if err := l.db.QueryRowContext(ctx, "SELECT count(*) FROM requests").Scan(&count); err != nil || count == 0 {
			return gone, l.wrapError("prune the request log", err)
		}
		// Remove slightly more than the excess, so that the next entry does not cause
		// another removal.
		share := max(count*(used-most)/used+count/20, 1)
		n, err := l.removeWhere(ctx, "num < (SELECT num FROM requests ORDER BY num LIMIT 1 OFFSET ?)", min(share, count-1))
		gone += n
		if err != nil || n == 0 {
			return gone, l.wrapError("prune the request log", err)
		}
	}
	return gone, nil
}

// removeWhere removes the entries that match a condition, and frees their space.
func (l *Log) removeWhere(ctx context.Context, where string, arg int64) (int64, error) {
	var last sql.NullInt64
	if err := l.db.QueryRowContext(ctx, "SELECT max(num) FROM requests WHERE "+where, arg).Scan(&last); err != nil || !last.Valid {
		return 0, err
	}
	var gone int64
	for {
		query := "DELETE FROM requests WHERE num IN (SELECT num FROM requests WHERE num <= ? AND (" + where + ") ORDER BY num LIMIT ?)" //nolint:gosec // G202: the condition is a constant of this package
		result, err := l.db.ExecContext(ctx, query,
			last.Int64, arg, pruneStep)
		if err != nil {
			return gone, err
		}
		n, err := result.RowsAffected()
		gone += n
		if err != nil {
			return gone, err
		}
		if n < pruneStep {
			break
		}
	}
	if gone > 0 {
		if err := l.compactFile(ctx); err != nil {
			return gone, err
		}
	}
	return gone, nil
}

// compactFile returns free pages to the file system, and truncates the write-ahead log,
// which still has the removed entries. If another process reads the log the whole time, the
// next removal truncates it.
func (l *Log) compactFile(ctx context.Context) error {
	for _, pragma := range []string{"PRAGMA incremental_vacuum", "PRAGMA wal_checkpoint(TRUNCATE)"} {
		rows, err := l.db.QueryContext(ctx, pragma) // each row of incremental_vacuum frees one page
		if err != nil {
			return err
		}
		for rows.Next() {
		}
		if err := rows.Close(); err != nil {
			return err
		}
	}
	return nil
}

// usedBytes returns the size of the used pages of the file.
func (l *Log) usedBytes(ctx context.Context) (bytes int64, err error) {
	err = l.db.QueryRowContext(ctx, `SELECT (p.page_count - f.freelist_count) * s.page_size
		FROM pragma_page_count p, pragma_freelist_count f, pragma_page_size s`).Scan(&bytes)
	return bytes, err
}
