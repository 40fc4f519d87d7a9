package postgres

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/store/rows"
)

// A commit is one statement, and so one transaction and one round trip. Its parameters are
// the parameters $1 to $45 that commitArgs returns, of which $1 to $25 are the columns of
// the run (rows.RunFields). The statements of Create and of Append both end with
// sqlCommitParts.
const sqlCommitParts = `, occurred as (
	insert into events (run, seq, at, kind, by_user, by_client, via, data, mac)
	select c.id, e.* from changed c, unnest($26::bigint[], $27::timestamptz[], $28::bytea[], $29::bytea[], $30::bytea[],
		$31::bytea[], $32::bytea[], $33::bytea[]) e
), handle_row as (
	insert into handles (token, run, seq) select $34::bytea, id, seq from changed where $34::bytea <> ''
), noted as (
	insert into run_words (run, seq, vector) select id, seq, array_to_tsvector($36::text[]) from changed where $36::text[] is not null
), cached as (
	insert into snapshots (run, seq, head, state, mac) select id, $37::bigint, $38::bytea, $39::bytea, $40::bytea
	from changed where $37::bigint > 0
	on conflict (run) do update set seq = excluded.seq, head = excluded.head, state = excluded.state, mac = excluded.mac
), notified as (
	insert into outbox (at, subject, op, user_id, item, workflow, project, seq)
	select updated, 'run', $42::text, user_id, id, '', '', seq from changed
), driven as (
	insert into drives (run, user_id, instance, attended) select id, user_id, $44::bytea, $45::int from changed where $43::text = 'taken'
	on conflict (run) do update set instance = excluded.instance, attended = excluded.attended, cancelled = 0
), released as (
	delete from drives using changed where run = id and $43::text = 'released'
), cancelled as (
	update drives set cancelled = 1 from changed where run = id and $43::text = 'cancelled'
)`

const sqlCreateRun = `
with defined as (
	insert into definitions (hash, text) values ($46::bytea, $47::bytea) on conflict do nothing
), changed as (
	insert into runs (id, user_id, client, workflow, name, version, hash, goal, project, project_path, branch, commit_id,
		status, kind, step, title, person, done, parent, parent_seq, created, updated, seq, head, handle)
	values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25)
	returning id, user_id, updated, seq, handle
)` + sqlCommitParts + `, requested as (
	insert into requests (user_id, key, run, seq, handle) select user_id, $35::bytea, id, seq, handle from changed where $35::bytea <> ''
)
select $41::bigint is not null, true`

// The update waits for another transaction on the same run and then checks the expected
// number again: of several appends with the same number, one succeeds.
const sqlAppendRun = `
with changed as (
	update runs set client = $3, workflow = $4, name = $5, version = $6, hash = $7, goal = $8, project = $9, project_path = $10,
		branch = $11, commit_id = $12, status = $13, kind = $14, step = $15, title = $16, person = $17, done = $18, parent = $19,
		parent_seq = $20, created = $21, updated = $22, seq = $23, head = $24, handle = $25
	where id = $1 and user_id = $2 and seq = $41::bigint
	returning id, user_id, updated, seq, handle
)` + sqlCommitParts + `, commanded as (
	insert into commands (run, key, seq, handle) select id, $35::bytea, seq, handle from changed where $35::bytea <> ''
)
select exists (select from changed), exists (select from runs where id = $1)`

// commitArgs returns the parameters $1 to $45 of a commit.
func commitArgs(c run.Commit, op string) []any {
	n := len(c.Events)
	seqs, times := make([]int64, n), make([]time.Time, n)
	kinds, users, clients, vias := make([][]byte, n), make([][]byte, n), make([][]byte, n), make([][]byte, n)
	data, macs := make([][]byte, n), make([][]byte, n)
	for i, e := range c.Events {
		seqs[i], times[i], kinds[i], users[i] = e.Seq, e.At, []byte(e.Kind), []byte(e.By.User)
		clients[i], vias[i], data[i], macs[i] = []byte(e.By.Client), []byte(e.By.Via), e.Data, e.MAC
	}
	var snap run.Snapshot
	if c.Snapshot != nil {
		snap = *c.Snapshot
	}
	var terms []string
	if len(c.Terms) > 0 {
		terms = append(slices.Clone(c.Terms), userLexeme(c.Record.User))
	}
	var drive run.DriveChange
	attended := 0
	if c.Drive != nil {
		drive = *c.Drive
	}
	if drive.Attended {
		attended = 1
	}
	return append(dialect().Values(rows.RunFields(&c.Record)),
		seqs, times, kinds, users, clients, vias, data, macs,
		byteString(c.Handle), byteString(c.Key), terms,
		snap.Seq, snap.Head, snap.State, snap.MAC, c.Expected, op, string(drive.Kind), byteString(drive.Instance), attended,
	)
}

// Create implements run.Writer.
func (s *Store) Create(ctx context.Context, d run.Definition, c run.Commit) error {
	if err := rows.CheckCommit(c); err != nil {
		return err
	}
	if c.Expected != 0 {
		return guideway.Errorf(guideway.CodeInternal, "the first commit of run %s must not follow event %d", c.Record.ID, c.Expected)
	}
	args := append(commitArgs(c, run.OpCreated), byteString(d.Hash), byteString(d.Text))
	return s.commitRun(ctx, "create a run", sqlCreateRun, args, c)
}

// Append implements run.Writer.
func (s *Store) Append(ctx context.Context, c run.Commit) error {
	if err := rows.CheckCommit(c); err != nil {
		return err
	}
	return s.commitRun(ctx, "append to a run", sqlAppendRun, commitArgs(c, run.OpChanged), c)
}

// commitRun executes the statement of Create or Append.
func (s *Store) commitRun(ctx context.Context, what, sql string, args []any, c run.Commit) error {
	err := s.retryUnlessStored(ctx, what,
		func(ctx context.Context, r rows.Reader) (bool, error) { return s.isStored(ctx, r, c) },
		func(ctx context.Context) error { return s.sendCommit(ctx, sql, args, c) })
	if err == nil {
		s.afterCommit()
	}
	return err
}

// sendCommit executes a statement once. If the commit has a job, both are one transaction.
func (s *Store) sendCommit(ctx context.Context, sql string, args []any, c run.Commit) error {
	if c.Job == nil {
		return sendStatement(ctx, s.pool, sql, args, c)
	}
	return s.withJobs(ctx, func(ctx context.Context, tx pgx.Tx) ([]run.Job, error) {
		return []run.Job{*c.Job}, sendStatement(ctx, tx, sql, args, c)
	})
}

// sendStatement executes the statement of a commit.
func sendStatement(ctx context.Context, q querier, sql string, args []any, c run.Commit) error {
	var fits, there bool
	err := q.QueryRow(ctx, sql, args...).Scan(&fits, &there)
	if code, _ := sqlState(err); code == pgerrcode.UniqueViolation {
		return guideway.Errorf(guideway.CodeConflict, "run %s, its handle or its request already exists: %w", c.Record.ID, err)
	}
	switch {
	case err != nil:
		return err
	case !there:
		return guideway.Errorf(guideway.CodeNotFound, "there is no run %q", c.Record.ID)
	case !fits:
		return guideway.Errorf(guideway.CodeConflict, "run %s has changed: its last event is not %d", c.Record.ID, c.Expected)
	}
	return nil
}

// isStored reports whether a commit is in the journal: with the same events and the same
// handle. Handles are unique.
func (s *Store) isStored(ctx context.Context, r rows.Reader, c run.Commit) (bool, error) {
	there, err := rows.Collect(ctx, r, s.EventsQuery(c.Record.ID, c.Expected, len(c.Events)), rows.ScanFields(rows.EventFields))
	if err != nil || len(there) != len(c.Events) {
		return false, err
	}
	for i, e := range c.Events {
		if !sameEvent(there[i], e) {
			return false, nil
		}
	}
	if c.Handle == "" {
		return true, nil
	}
	var own bool
	err = s.pool.QueryRow(ctx, `select exists (select from handles where token = $1 and run = $2 and seq = $3)`,
		byteString(c.Handle), byteString(c.Record.ID), c.Record.Seq).Scan(&own)
	return own, err
}

func sameEvent(a, b run.Event) bool {
	return a.Seq == b.Seq && a.At.Equal(b.At.Truncate(time.Microsecond)) && a.Kind == b.Kind && a.By == b.By &&
		bytes.Equal(a.Data, b.Data) && bytes.Equal(a.MAC, b.MAC)
}
