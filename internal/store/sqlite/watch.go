package sqlite

import (
	"context"
	"database/sql"
	"time"
)

// pollChanges notifies all watchers if data_version shows a commit of another connection.
// If data_version cannot be read, pollChanges notifies them at each interval.
func (s *Store) pollChanges(ctx context.Context) {
	ticker := time.NewTicker(s.o.pollEvery)
	defer ticker.Stop()
	var conn *sql.Conn
	defer func() {
		if conn != nil {
			_ = conn.Close()
		}
	}()
	last, failed := int64(-1), false
	for {
		version, err := dataVersion(ctx, s.readers.db, &conn)
		if ctx.Err() != nil {
			return
		}
		if err != nil && !failed {
			s.o.Logger.Warn("cannot poll for changes of other processes", "error", err)
		}
		// The first poll cannot detect changes between the beginning of the watch and the
		// poll, so it always notifies.
		if failed = err != nil; failed || version != last {
			last = version
			s.watch.NotifyAll()
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// dataVersion reads a number that changes with each commit of another connection. It is
// specific to a connection, so conn is kept open.
func dataVersion(ctx context.Context, db *sql.DB, conn **sql.Conn) (version int64, err error) {
	if *conn == nil {
		if *conn, err = db.Conn(ctx); err != nil {
			*conn = nil
			return 0, err
		}
	}
	if err = (*conn).QueryRowContext(ctx, `PRAGMA data_version`).Scan(&version); err != nil {
		_ = (*conn).Close()
		*conn = nil
	}
	return version, err
}
