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

// patience is longer than any trouble that a test makes; nothing is measured by
// it.
const patience = time.Minute

// loss says what a proxy loses of a call.
type loss struct {
	name string
	arm  func(*proxy)
}

func losses() []loss {
	return []loss{
		{"the answer is lost", func(p *proxy) { p.loseAnswer.Store(true) }},
		{"the request is lost", func(p *proxy) { p.loseRequest.Store(true) }},
	}
}

// A commit whose answer is lost was carried out, one whose request is lost was
// not: either way the caller gets what it asked for, once.
func TestLostCommit(t *testing.T) {
	t.Parallel()
	for _, l := range losses() {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			u := inSchema(t)
			there := open(t, postgres.Options{URL: u})
			p, through := newProxy(t, u)
			s := open(t, postgres.Options{URL: through, Patience: patience})
			l.arm(p)
			d, c := begin("r_a", "ada", "an aim")
			c.Key = "request"
			must(t, s.Create(t.Context(), d, c))
			r := c.Record
			for i := range 5 {
				if i == 1 { // the very same events, but for what is new in each
					continue
				}
				c := named(r, fmt.Sprint("text", i))
				l.arm(p)
				must(t, s.Append(t.Context(), c))
				r = c.Record
			}
			quiet := follow(r, 1, nil) // nothing but its events tells it from another one
			quiet.Handle, quiet.Record.Handle = "", r.Handle
			l.arm(p)
			must(t, s.Append(t.Context(), quiet))
			if p.cuts.Load() != 6 {
				t.Errorf("%d connections were cut", p.cuts.Load())
			}
			got, err := there.Run(t.Context(), "r_a")
			must(t, err)
			if diff := cmp.Diff(quiet.Record, got); diff != "" {
				t.Errorf("record (-want +got):\n%s", diff)
			}
			acks{}.wantFeed(t, there, 6)
		})
	}
}

// A commit is not taken for carried out because another one is in its place.
func TestLostCommitAgainstAnother(t *testing.T) {
	t.Parallel()
	u := inSchema(t)
	there := open(t, postgres.Options{URL: u})
	p, through := newProxy(t, u)
	s := open(t, postgres.Options{URL: through, Patience: patience})
	r := create(t, there, "r_a")
	_, err := s.Run(t.Context(), "r_a") // so that there is a connection
	must(t, err)
	must(t, there.Append(t.Context(), named(r, "other")))
	p.loseRequest.Store(true)
	err = s.Append(t.Context(), named(r, "own"))
	if guideway.ErrorCode(err) != guideway.CodeConflict {
		t.Errorf("got %v, want a conflict", err)
	}
	_, c := begin("r_a", "ada", "another aim")
	p.loseRequest.Store(true)
	if err := s.Create(t.Context(), run.Definition{Hash: "sha256:0"}, c); guideway.ErrorCode(err) != guideway.CodeConflict {
		t.Errorf("got %v, want a conflict", err)
	}
}

// The same for documents: an update that was carried out is not made again, even
// though its change would do something again.
func TestLostDocument(t *testing.T) {
	t.Parallel()
	for _, l := range losses() {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			u := inSchema(t)
			there := open(t, postgres.Options{URL: u})
			p, through := newProxy(t, u)
			s := open(t, postgres.Options{URL: through, Patience: patience})
			now := time.Now().UTC().Truncate(time.Microsecond)
			d := session.Document{
				Ref: session.Ref{User: "ada", Project: "p", Workflow: "w", ID: "x"}, Created: now, Updated: now, Revision: 1,
				Data: map[string]any{"list": []any{}},
			}
			l.arm(p)
			must(t, s.CreateDocument(t.Context(), d, nil))
			for i := range 3 {
				var once sync.Once
				got, err := s.UpdateDocument(t.Context(), d.Ref, func(d session.Document) (session.Document, []session.LogEntry, error) {
					d.Data = maps.Clone(d.Data)
					d.Data["list"] = append(d.Data["list"].([]any), fmt.Sprint(i))
					once.Do(func() { l.arm(p) }) // the document is read, and about to be written
					return d, nil, nil
				})
				must(t, err)
				d = got
			}
			l.arm(p)
			must(t, s.DeleteDocument(t.Context(), d.Ref, now))
			l.arm(p)
			must(t, s.RestoreDocument(t.Context(), d.Ref, now))
			list, err := there.Documents(t.Context(), session.Filter{Ref: d.Ref})
			must(t, err)
			if diff := cmp.Diff([]session.Document{d}, list); diff != "" {
				t.Errorf("documents (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]any{"0", "1", "2"}, list[0].Data["list"]); diff != "" {
				t.Errorf("the list in the document (-want +got):\n%s", diff)
			}
			changes, _, err := there.Changes(t.Context(), 0, 100)
			must(t, err)
			if len(changes) != 6 {
				t.Errorf("the feed has %d changes", len(changes))
			}
		})
	}
}

// Where somebody else has changed the document after an update whose answer is
// lost, nobody can say whether it was carried out, and the store does not.
func TestLostUpdateInDoubt(t *testing.T) {
	t.Parallel()
	u := inSchema(t)
	there := open(t, postgres.Options{URL: u})
	p, through := newProxy(t, u)
	s := open(t, postgres.Options{URL: through, Patience: patience})
	now := time.Now().UTC().Truncate(time.Microsecond)
	ref := session.Ref{User: "ada", Project: "p", Workflow: "w", ID: "x"}
	must(t, there.CreateDocument(t.Context(), session.Document{Ref: ref, Created: now, Updated: now, Revision: 1, Data: map[string]any{}}, nil))
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
	wantFault(t, err, guideway.CodeUnavailable, "not known")
}

// Connections that an operator ends do not lose or double a commit.
func TestConnectionsEnded(t *testing.T) {
	t.Parallel()
	u := inSchema(t)
	name := schemaOf(t, u)
	s := open(t, postgres.Options{URL: with(t, u, "application_name", name), Patience: patience, MaxConns: 4})
	watcher := open(t, postgres.Options{URL: with(t, u, "application_name", name), Patience: patience})
	const clients, steps, rounds = 4, 60, 15
	for i := range clients {
		create(t, s, fmt.Sprintf("r_%d", i))
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	told := make(chan error, 1)
	go func() { told <- followFeed(ctx, watcher, clients+clients*steps) }()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for range rounds {
			execute(t, u, `select pg_terminate_backend(pid), pg_sleep(0.02) from pg_stat_activity where application_name = '`+name+`'`)
		}
	}()
	all := appendAll(t, s, clients, steps)
	<-ended
	if there := all.wantKept(t, s, u); there != clients*steps {
		t.Errorf("%d commits are there, %d were made", there, clients*steps)
	}
	must(t, <-told)
}

// appendAll has clients append to a run each until all is acknowledged, and
// takes no error.
func appendAll(t *testing.T, s *postgres.Store, clients, steps int) acks {
	t.Helper()
	all := acks{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			r, err := s.Run(t.Context(), fmt.Sprintf("r_%d", i))
			for n := 0; err == nil && n < steps; n++ {
				c := named(r, fmt.Sprintf("c%d-%d", i, n))
				if err = s.Append(t.Context(), c); err == nil {
					r = c.Record
					mu.Lock()
					all.add(r.ID, r.Seq, fmt.Sprintf("c%d-%d", i, n))
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

// followFeed reads the feed as it is told of changes, until there were so many.
func followFeed(ctx context.Context, s *postgres.Store, n int) error {
	woken := s.Watch(ctx)
	var after int64
	for seen := 0; seen < n; {
		list, reset, err := s.Changes(ctx, after, 50)
		if err != nil || reset {
			return fmt.Errorf("behind %d: reset %v, %w", after, reset, err)
		}
		for _, c := range list {
			if c.Pos != after+1 {
				return fmt.Errorf("position %d comes behind %d", c.Pos, after)
			}
			after = c.Pos
		}
		if seen += len(list); len(list) > 0 {
			continue
		}
		if _, open := <-woken; !open {
			return fmt.Errorf("the watch ended behind %d changes: %w", seen, ctx.Err())
		}
	}
	return nil
}
