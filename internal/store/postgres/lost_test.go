package postgres_test

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/session"
	"github.com/guideway-dev/guideway/internal/store/postgres"
)

// testTimeout is longer than any interruption that a test causes.
const testTimeout = time.Minute

// lossCase selects the direction in which a proxy loses data.
type lossCase struct {
	name string
	arm  func(*proxy)
}

func lossCases() []lossCase {
	return []lossCase{
		{"the answer is lost", func(p *proxy) { p.loseAnswer.Store(true) }},
		{"the request is lost", func(p *proxy) { p.loseRequest.Store(true) }},
	}
}

// TestLostCommit checks that a commit is applied exactly once if its response or its
// request is lost.
func TestLostCommit(t *testing.T) {
	t.Parallel()
	for _, l := range lossCases() {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			u := newSchemaURL(t)
			there := openStore(t, postgres.Options{URL: u})
			p, through := newProxy(t, u)
			s := openStore(t, postgres.Options{URL: through, Patience: testTimeout})
			l.arm(p)
			d, c := newTestRun("r_a", "ada", "an aim")
			c.Key = "request"
			requireNoError(t, s.Create(t.Context(), d, c))
			r := c.Record
			for i := range 5 {
				if i == 1 { // the numbers of the texts need not be consecutive
					continue
				}
				c := newNamedCommit(r, fmt.Sprint("text", i))
				l.arm(p)
				requireNoError(t, s.Append(t.Context(), c))
				r = c.Record
			}
			quiet := newCommit(r, 1, nil) // only the events distinguish the commit from others
			quiet.Handle, quiet.Record.Handle = "", r.Handle
			l.arm(p)
			requireNoError(t, s.Append(t.Context(), quiet))
			if p.cuts.Load() != 6 {
				t.Errorf("%d connections were cut", p.cuts.Load())
			}
			got, err := there.Run(t.Context(), "r_a")
			requireNoError(t, err)
			if diff := cmp.Diff(quiet.Record, got); diff != "" {
				t.Errorf("record (-want +got):\n%s", diff)
			}
			acks{}.checkFeed(t, there, 6)
		})
	}
}

// TestLostCommitAgainstAnother checks that a lost commit is not treated as applied if a
// different commit took its position.
func TestLostCommitAgainstAnother(t *testing.T) {
	t.Parallel()
	u := newSchemaURL(t)
	there := openStore(t, postgres.Options{URL: u})
	p, through := newProxy(t, u)
	s := openStore(t, postgres.Options{URL: through, Patience: testTimeout})
	r := createTestRun(t, there, "r_a")
	_, err := s.Run(t.Context(), "r_a") // open a connection
	requireNoError(t, err)
	requireNoError(t, there.Append(t.Context(), newNamedCommit(r, "other")))
	p.loseRequest.Store(true)
	err = s.Append(t.Context(), newNamedCommit(r, "own"))
	if guideway.ErrorCode(err) != guideway.CodeConflict {
		t.Errorf("got %v, want a conflict", err)
	}
	_, c := newTestRun("r_a", "ada", "another aim")
	p.loseRequest.Store(true)
	if err := s.Create(t.Context(), run.Definition{Hash: "sha256:0"}, c); guideway.ErrorCode(err) != guideway.CodeConflict {
		t.Errorf("got %v, want a conflict", err)
	}
}

// TestLostDocument checks that each change of a document is applied exactly once if its
// response or its request is lost, even if the change is not idempotent.
func TestLostDocument(t *testing.T) {
	t.Parallel()
	for _, l := range lossCases() {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			u := newSchemaURL(t)
			there := openStore(t, postgres.Options{URL: u})
			p, through := newProxy(t, u)
			s := openStore(t, postgres.Options{URL: through, Patience: testTimeout})
			now := time.Now().UTC().Truncate(time.Microsecond)
			d := session.Document{
				Ref: session.Ref{User: "ada", Project: "p", Workflow: "w", ID: "x"}, Created: now, Updated: now, Revision: 1,
				Data: map[string]any{"list": []any{}},
			}
			l.arm(p)
			requireNoError(t, s.CreateDocument(t.Context(), d, nil))
			for i := range 3 {
				var once sync.Once
				got, err := s.UpdateDocument(t.Context(), d.Ref, func(d session.Document) (session.Document, []session.LogEntry, error) {
					d.Data = maps.Clone(d.Data)
					d.Data["list"] = append(d.Data["list"].([]any), fmt.Sprint(i))
					once.Do(func() { l.arm(p) }) // lose data between the read and the write
					return d, nil, nil
				})
				requireNoError(t, err)
				d = got
			}
			l.arm(p)
			requireNoError(t, s.DeleteDocument(t.Context(), d.Ref, now))
			l.arm(p)
			requireNoError(t, s.RestoreDocument(t.Context(), d.Ref, now))
			list, err := there.Documents(t.Context(), session.Filter{Ref: d.Ref})
			requireNoError(t, err)
			if diff := cmp.Diff([]session.Document{d}, list); diff != "" {
				t.Errorf("documents (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]any{"0", "1", "2"}, list[0].Data["list"]); diff != "" {
				t.Errorf("the list in the document (-want +got):\n%s", diff)
			}
			changes, _, err := there.Changes(t.Context(), 0, 100)
			requireNoError(t, err)
			if len(changes) != 6 {
				t.Errorf("the feed has %d changes", len(changes))
			}
		})
	}
}

// TestLostUpdateInDoubt checks that the error reports an unknown outcome if another client
// has changed the document and the connection is lost during the update.
func TestLostUpdateInDoubt(t *testing.T) {
	t.Parallel()
	u := newSchemaURL(t)
	there := openStore(t, postgres.Options{URL: u})
	p, through := newProxy(t, u)
	s := openStore(t, postgres.Options{URL: through, Patience: testTimeout})
	now := time.Now().UTC().Truncate(time.Microsecond)
	ref := session.Ref{User: "ada", Project: "p", Workflow: "w", ID: "x"}
	requireNoError(t, there.CreateDocument(t.Context(), session.Document{Ref: ref, Created: now, Updated: now, Revision: 1, Data: map[string]any{}}, nil))
	put := func(key string) func(session.Document) (session.Document, []session.LogEntry, error) {
		return func(d session.Document) (session.Document, []session.LogEntry, error) {
			d.Data = maps.Clone(d.Data)
			d.Data[key] = true
			return d, nil, nil
		}
	}
	_, err := s.UpdateDocument(t.Context(), ref, func(d session.Document) (session.Document, []session.LogEntry, error) {
		if _, err := there.UpdateDocument(context.Background(), ref, put("other")); err != nil {
			t.Error(err)
		}
		p.loseRequest.Store(true)
		return put("own")(d)
	})
	checkError(t, err, guideway.CodeUnavailable, "unknown whether")
}

// TestConnectionsEnded checks that connections terminated by an operator neither lose nor
// duplicate a commit.
func TestConnectionsEnded(t *testing.T) {
	t.Parallel()
	u := newSchemaURL(t)
	name := schemaName(t, u)
	s := openStore(t, postgres.Options{URL: withParameter(t, u, "application_name", name), Patience: testTimeout, MaxConns: 4})
	watcher := openStore(t, postgres.Options{URL: withParameter(t, u, "application_name", name), Patience: testTimeout})
	const clients, steps, rounds = 4, 60, 15
	for i := range clients {
		createTestRun(t, s, fmt.Sprintf("r_%d", i))
	}
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	told := make(chan error, 1)
	go func() { told <- followFeed(ctx, watcher, clients+clients*steps) }()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for range rounds {
			execSQL(t, u, `select pg_terminate_backend(pid), pg_sleep(0.02) from pg_stat_activity where application_name = '`+name+`'`)
		}
	}()
	all := appendAll(t, s, clients, steps)
	<-ended
	if there := all.checkJournal(t, s, u); there != clients*steps {
		t.Errorf("%d commits are stored, %d were made", there, clients*steps)
	}
	requireNoError(t, <-told)
}

// appendAll appends with several clients, each to its own run, until all commits are
// acknowledged. Any error fails the test.
func appendAll(t *testing.T, s *postgres.Store, clients, steps int) acks {
	t.Helper()
	all := acks{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			r, err := s.Run(t.Context(), fmt.Sprintf("r_%d", i))
			for n := 0; err == nil && n < steps; n++ {
				c := newNamedCommit(r, fmt.Sprintf("c%d-%d", i, n))
				if err = s.Append(t.Context(), c); err == nil {
					r = c.Record
					mu.Lock()
					all.addAck(r.ID, r.Seq, fmt.Sprintf("c%d-%d", i, n))
					mu.Unlock()
				}
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	return all
}

// followFeed reads the feed at each notification until it has read n changes.
func followFeed(ctx context.Context, s *postgres.Store, n int) error {
	woken := s.Watch(ctx)
	var after int64
	for seen := 0; seen < n; {
		list, reset, err := s.Changes(ctx, after, 50)
		if err != nil || reset {
			return fmt.Errorf("after %d: reset %v, %w", after, reset, err)
		}
		for _, c := range list {
			if c.Pos != after+1 {
				return fmt.Errorf("position %d follows %d", c.Pos, after)
			}
			after = c.Pos
		}
		if seen += len(list); len(list) > 0 {
			continue
		}
		if _, open := <-woken; !open {
			return fmt.Errorf("the watch ended after %d changes: %w", seen, ctx.Err())
		}
	}
	return nil
}
