package checkpoints

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/bench/measure"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/guideway-dev/guideway/internal/platform/words"
	"github.com/guideway-dev/guideway/internal/store/checkpoints"
	"github.com/guideway-dev/guideway/internal/store/sqlite"
	"github.com/guideway-dev/guideway/internal/testutil/conversation"
)

const (
	// contextSize is the size of the contexts of the service levels, in bytes.
	contextSize = 100_000
	// newShare is the share of a context that changes with each step.
	newShare = 0.10
	clients  = 8
)

// level has the times that seed 003 requires of a row, and the budget of the design.
type level struct{ seed, budget string }

// owner returns the owner of all checkpoints.
func owner() guideway.Principal { return guideway.Principal{User: "ada", Client: "bench"} }

// openStore opens checkpoints in a directory.
func (b *bench) openStore(ctx context.Context, dir string) (*checkpoints.Checkpoints, error) {
	return checkpoints.Open(ctx, checkpoints.Options{DataDir: dir, Limits: checkpoint.Limits{PerSeries: 1000}})
}

// newDir creates a directory.
func (b *bench) newDir() (string, error) {
	b.dirs++
	dir := filepath.Join(b.Dir, fmt.Sprint("data-", b.dirs))
	return dir, os.MkdirAll(dir, 0o700)
}

// measureLevels measures the table of service levels.
func (b *bench) measureLevels(ctx context.Context) (*table, error) {
	t := &table{
		title: "### Service levels\n\nMilliseconds. Contexts of 100 kB, 10 percent of each new, on SQLite. \"Cold\" is the first call of a process, the opening of the store included; the system's cache of files is warm.",
		head:  []string{"what", "calls", "p50", "p95", "p99", "max", "seed 003: p50 / p95 / p99 / max", "design: p50 / p99"},
	}
	for _, measure := range []func(context.Context, *table) error{b.measureSaves, b.measureLoads, b.measureWindow, b.measureQueries} {
		if err := measure(ctx, t); err != nil {
			return nil, err
		}
	}
	return t, nil
}

func (t *table) addLevel(what string, took *measure.Times, l level) {
	t.addRow(append(append([]string{what}, timeCells(took)...), l.seed, l.budget)...)
}

// saver saves the contexts of one session.
type saver struct {
	session string
	talk    *conversation.Conversation
}

func newSaver(seed uint64) *saver {
	return &saver{session: fmt.Sprint("session-", seed), talk: conversation.New(seed, contextSize, newShare)}
}

func (s *saver) saveNext(ctx context.Context, c *checkpoints.Checkpoints, took *measure.Times) error {
	request := checkpoint.SaveRequest{Session: s.session, Context: s.talk.Next(), Workflow: "bench"}
	return took.Call(func() error {
		_, err := c.Save(ctx, owner(), request)
		return err
	})
}

// measureSaves measures saving.
func (b *bench) measureSaves(ctx context.Context, t *table) error {
	l := level{"50 / 100 / 200 / 1000", "10 / 40"}
	dir, err := b.newDir()
	if err != nil {
		return err
	}
	one, many, cold := &measure.Times{}, &measure.Times{}, &measure.Times{}
	c, err := b.openStore(ctx, dir)
	if err != nil {
		return err
	}
	for session := range b.Pick(25, 5) {
		s := newSaver(uint64(session))
		for range 20 {
			if err := s.saveNext(ctx, c, one); err != nil {
				return err
			}
		}
	}
	err = measure.RunClients(clients, func(client int) error {
		s := newSaver(uint64(1000 + client))
		for range b.Pick(100, 20) {
			if err := s.saveNext(ctx, c, many); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		err = c.Close()
	}
	if err != nil {
		return err
	}
	s := newSaver(5000)
	for range b.Pick(60, 10) {
		request := checkpoint.SaveRequest{Session: s.session, Context: s.talk.Next(), Workflow: "bench"}
		err := b.callFresh(ctx, dir, cold, func(c *checkpoints.Checkpoints) error {
			_, err := c.Save(ctx, owner(), request)
			return err
		})
		if err != nil {
			return err
		}
	}
	t.addLevel("save, one client", one, l)
	t.addLevel("save, 8 clients at once", many, l)
	t.addLevel("save, cold", cold, l)
	return nil
}

// callFresh measures opening the store and making one call, as a new process does.
func (b *bench) callFresh(ctx context.Context, dir string, took *measure.Times, do func(*checkpoints.Checkpoints) error) error {
	var c *checkpoints.Checkpoints
	err := took.Call(func() (err error) {
		if c, err = b.openStore(ctx, dir); err == nil {
			err = do(c)
		}
		return err
	})
	if err != nil {
		return err
	}
	return c.Close()
}

// saveSession saves a session of 100 checkpoints.
func (b *bench) saveSession(ctx context.Context, s *saver) (dir string, ids []string, err error) {
	if dir, err = b.newDir(); err != nil {
		return "", nil, err
	}
	c, err := b.openStore(ctx, dir)
	if err != nil {
		return "", nil, err
	}
	for range 100 {
		saved, err := c.Save(ctx, owner(), checkpoint.SaveRequest{Session: s.session, Context: s.talk.Next(), Workflow: "bench"})
		if err != nil {
			return "", nil, err
		}
		ids = append(ids, saved.ID)
	}
	return dir, ids, c.Close()
}

// measureLoads measures loading: the newest checkpoint of a session of 100, and any one of
// them, for which up to 31 deltas are applied to a complete checkpoint.
func (b *bench) measureLoads(ctx context.Context, t *table) error {
	l := level{"100 / 500 / 1000 / 5000", "5 / 10"}
	s := newSaver(1)
	dir, ids, err := b.saveSession(ctx, s)
	if err != nil {
		return err
	}
	c, err := b.openStore(ctx, dir) // like a new process, without cached data
	if err != nil {
		return err
	}
	load := func(took *measure.Times, r checkpoint.LoadRequest) error {
		return took.Call(func() error {
			_, err := c.Load(ctx, owner(), r)
			return err
		})
	}
	newest, any, many, cold := &measure.Times{}, &measure.Times{}, &measure.Times{}, &measure.Times{}
	for i := range b.Pick(500, 50) {
		if err := load(newest, checkpoint.LoadRequest{Session: s.session}); err != nil {
			return err
		}
		if err := load(any, checkpoint.LoadRequest{ID: ids[i*37%len(ids)]}); err != nil {
			return err
		}
	}
	err = measure.RunClients(clients, func(client int) error {
		for i := range b.Pick(100, 10) {
			if err := load(many, checkpoint.LoadRequest{ID: ids[(i*37+client*11)%len(ids)]}); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		err = c.Close()
	}
	if err != nil {
		return err
	}
	for range b.Pick(60, 10) {
		err := b.callFresh(ctx, dir, cold, func(c *checkpoints.Checkpoints) error {
			_, err := c.Load(ctx, owner(), checkpoint.LoadRequest{Session: s.session})
			return err
		})
		if err != nil {
			return err
		}
	}
	t.addLevel("load the newest, one client", newest, l)
	t.addLevel("load any of 100, one client", any, l)
	t.addLevel("load any of 100, 8 clients at once", many, l)
	t.addLevel("load the newest, cold", cold, l)
	return nil
}

// measureQueries measures lists among many checkpoints.
func (b *bench) measureQueries(ctx context.Context, t *table) error {
	l := level{"5 / 10 / 20 / 100", "-"}
	count := b.Pick(100_000, 5_000)
	dir, err := b.fillStore(ctx, count)
	if err != nil {
		return err
	}
	c, err := b.openStore(ctx, dir)
	if err != nil {
		return err
	}
	for _, q := range []struct {
		name    string
		request checkpoint.ListRequest
	}{
		{"by workflow", checkpoint.ListRequest{Workflow: "workflow-7"}},
		{"by tag", checkpoint.ListRequest{Tags: []string{"rare-17"}}},
		{"by two words", checkpoint.ListRequest{Query: "refactored topic17"}},
		{"by words of all", checkpoint.ListRequest{Query: "refactor the module"}},
	} {
		one, many, cold := &measure.Times{}, &measure.Times{}, &measure.Times{}
		list := func(took *measure.Times) error {
			return took.Call(func() error {
				_, err := c.List(ctx, owner(), q.request)
				return err
			})
		}
		for range b.Pick(300, 30) {
			if err := list(one); err != nil {
				return err
			}
		}
		err := measure.RunClients(clients, func(int) error {
			for range b.Pick(50, 5) {
				if err := list(many); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		for range b.Pick(20, 3) {
			if err := b.callFresh(ctx, dir, cold, func(c *checkpoints.Checkpoints) error {
				_, err := c.List(ctx, owner(), q.request)
				return err
			}); err != nil {
				return err
			}
		}
		name := fmt.Sprintf("list 20 of %d %s", count, q.name)
		t.addLevel(name+", one client", one, l)
		t.addLevel(name+", 8 clients at once", many, l)
		t.addLevel(name+", cold", cold, l)
	}
	return c.Close()
}

// fillStore creates a store with count checkpoints.
func (b *bench) fillStore(ctx context.Context, count int) (dir string, err error) {
	if dir, err = b.newDir(); err != nil {
		return "", err
	}
	x, err := sqlite.Open(ctx, sqlite.Options{Path: filepath.Join(dir, "guideway.db")})
	if err != nil {
		return "", err
	}
	return dir, errors.Join(fillIndex(ctx, x, count), x.Close())
}

// fillIndex adds n records without contents, 20 to a session.
func fillIndex(ctx context.Context, x checkpoint.Index, n int) error {
	start := time.Now().Add(-time.Duration(n) * time.Second)
	for i := range n {
		session, at := i/20, start.Add(time.Duration(i)*time.Second)
		r := checkpoint.Record{
			ID: fmt.Sprintf("c_%07d", i), SeriesKey: checkpoint.SeriesKey{User: "ada", Session: fmt.Sprint("s", session)},
			Number: int64(i%20) + 1, Link: int64(i % 20), Workflow: fmt.Sprint("workflow-", session%50), Project: fmt.Sprint("project-", session%40),
			Kind: checkpoint.KindManual, Created: at, Bytes: contextSize, Sum: []byte("sum"), Tags: []string{"green", fmt.Sprint("rare-", i%5000)},
			Form: checkpoint.Form{Blob: "blob", Stored: 5000},
		}
		if i%20 > 0 {
			r.Parent = fmt.Sprintf("c_%07d", i-1)
		}
		text := fmt.Sprintf("refactor the module of topic%d, subject%d is done and the tests pass", i%1000, i%20_000)
		if err := x.Apply(ctx, checkpoint.Change{Series: r.SeriesKey, Add: &r, Terms: words.Of(text), At: at, Touch: true}); err != nil {
			return err
		}
	}
	return nil
}

// contextsOf returns the first contexts of a session.
func contextsOf(seed uint64, n int, fresh float64) []json.RawMessage {
	talk := conversation.New(seed, contextSize, fresh)
	list := make([]json.RawMessage, n)
	for i := range list {
		list[i] = talk.Next()
	}
	return list
}
