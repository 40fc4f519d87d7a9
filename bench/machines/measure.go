package machines

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/bench/measure"
	"github.com/guideway-dev/guideway/internal/hooks/sandbox"
	machinedef "github.com/guideway-dev/guideway/internal/machine/definition"
	"github.com/guideway-dev/guideway/internal/machine/driver"
	machineengine "github.com/guideway-dev/guideway/internal/machine/engine"
	"github.com/guideway-dev/guideway/internal/machine/llm/scripted"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/store/keyfile"
	"github.com/guideway-dev/guideway/internal/store/rollbackguard"
	"github.com/guideway-dev/guideway/internal/store/sqlite"
)

// kind is a kind of machine: three states, each with a request to a model.
type kind string

const (
	// plain has no handlers, withHandlers three in each state.
	plain        kind = "3 model calls"
	withHandlers kind = "3 model calls, 9 handlers"
)

const source = `export default {
  ask() { this.workflow_contexts.get("talk").addMessage({ role: "user", content: "Go on with " + this.input }); },
  note() { this.common_data.done = (this.common_data.done ?? "") + this.last_response.choices[0].message.content; },
  on() { return { start: "middle", middle: "end", end: "stop" }[this.common_data.at = next(this.common_data.at)]; },
};
const next = (at) => ({ start: "middle", middle: "end" })[at] ?? "start";
`

// newDefinition makes the machine.
func (k kind) newDefinition() (*machinedef.Definition, error) {
	handlers := ""
	if k == withHandlers {
		handlers = `, "pre_handler": "ask", "post_handler": "note", "transition_handler": "on"`
	}
	state := func(name, next string) string {
		if k == plain {
			handlers = `, "next_state": "` + next + `"`
		}
		return fmt.Sprintf(`{"name": %q, "agent": "worker"%s}`, name, handlers)
	}
	config := `{
  "workflow_name": "measured", "description": "Three steps.", "input": {"name": "task", "type": "string", "description": "What to do."},
  "output": {"name": "done", "type": "string", "description": "What was done."},
  "contexts": [{"name": "talk", "starting_messages": [{"role": "user", "content": "Go."}]}],
  "agents": [{"agent_role": "worker", "context": "talk", "role": "assistant"}],
  "states": [` + strings.Join([]string{state("start", "middle"), state("middle", "end"), state("end", "stop")}, ",") + `, {"name": "stop"}]
}`
	d, found := machinedef.Parse(machinedef.Files{
		Config: machinedef.File{Path: "measured.json", Data: []byte(config)},
		Script: &machinedef.File{Path: "measured/script.js", Data: []byte(source)},
		Roles:  []machinedef.File{{Path: "measured/roles.json", Data: []byte(`{"worker": {"systemMessage": "Work."}}`)}},
	})
	if d == nil {
		return nil, fmt.Errorf("the machine does not parse: %+v", found)
	}
	return d, nil
}

// bench is a process that executes machines.
type bench struct {
	service    *driver.Service
	definition *machinedef.Definition
	journal    *sqlite.Store
	pool       *sandbox.Pool
}

// Model implements driver.Models.
func (b *bench) Model(driver.RunScope, machinedef.Level, string) (driver.SelectedModel, error) {
	rules := scripted.Script{Rules: []scripted.Rule{{Answer: scripted.Answer{Content: strings.Repeat("A word of an answer. ", 15)}}}}
	return driver.SelectedModel{Model: scripted.New(rules), Name: "scripted"}, nil
}

func openBench(ctx context.Context, dir string, k kind) (*bench, error) {
	b := &bench{}
	var err error
	if b.definition, err = k.newDefinition(); err != nil {
		return nil, err
	}
	key, _, err := keyfile.LoadOrCreate(filepath.Join(dir, "journal.key"))
	if err != nil {
		return nil, err
	}
	if b.journal, err = sqlite.Open(ctx, sqlite.Options{Path: filepath.Join(dir, "guideway.db")}); err != nil {
		return nil, err
	}
	heads, err := rollbackguard.Open(filepath.Join(dir, "heads"), key)
	if err != nil {
		return nil, err
	}
	if b.pool, err = sandbox.NewPool(sandbox.Options{}); err != nil {
		return nil, err
	}
	b.service, err = driver.New(driver.Options{
		Journal: b.journal, Key: key, Heads: heads, Models: b, Handlers: &driver.Scripts{Sandbox: b.pool, Owner: "bench"},
		Store: b.journal, Logger: slog.Default(),
	})
	return b, err
}

func (b *bench) closeAll(ctx context.Context) error {
	if err := b.pool.Close(ctx); err != nil {
		return err
	}
	return b.journal.Close()
}

// ownerCaller returns the owner of all runs.
func ownerCaller() run.Caller {
	return run.Caller{Principal: guideway.Principal{User: "bench", Client: "bench"}, Via: run.ViaAgent}
}

// runMachine runs a machine to its end and returns the duration of the run and of each
// step.
func (b *bench) runMachine(ctx context.Context) (took time.Duration, steps []time.Duration, err error) {
	begun := time.Now()
	s, err := b.service.Start(ctx, ownerCaller(), driver.StartRequest{Definition: b.definition, Inputs: runInputs()})
	if err != nil {
		return 0, nil, err
	}
	last := time.Time{}
	err = b.service.DriveAttended(ctx, ownerCaller().User, s.RunID, func(u driver.Update) {
		if u.Event == nil || u.Event.Kind != machineengine.KindStateEntered && u.Event.Kind != machineengine.KindCompleted {
			return
		}
		now := time.Now()
		if !last.IsZero() {
			steps = append(steps, now.Sub(last))
		}
		last = now
	})
	if err == nil && len(steps) != 3 {
		err = fmt.Errorf("the run %s has %d steps", s.RunID, len(steps))
	}
	return time.Since(begun), steps, err
}

// row holds the figures of a kind.
type row struct {
	kind kind
	// alone holds the durations of sequential runs, each of 3 steps, and aloneSteps the
	// durations of their steps. together is the elapsed time of all concurrent runs, and
	// steps holds the durations of their steps.
	alone, aloneSteps, steps []time.Duration
	together                 time.Duration
	machines                 int
	// before and after are the memory of the process, and workers is the memory of the
	// script workers.
	before, after, workers int64
}

// measureKind measures a kind on a new journal.
func measureKind(ctx context.Context, k kind, o *options) (row, error) {
	r := row{kind: k, machines: o.machines}
	place, err := os.MkdirTemp(o.Dir, "")
	if err != nil {
		return r, err
	}
	b, err := openBench(ctx, place, k)
	if err != nil {
		return r, err
	}
	for range o.Pick(200, 30) {
		took, steps, err := b.runMachine(ctx)
		if err != nil {
			return r, err
		}
		r.alone, r.aloneSteps = append(r.alone, took), append(r.aloneSteps, steps...)
	}
	r.before, _ = readMemory()
	var mu sync.Mutex
	stop, err := startProfile(k, o)
	if err != nil {
		return r, err
	}
	begun := time.Now()
	failed := measure.RunClients(o.machines, func(int) error {
		_, steps, err := b.runMachine(ctx)
		mu.Lock()
		defer mu.Unlock()
		r.steps = append(r.steps, steps...)
		return err
	})
	r.together = time.Since(begun)
	if err := stop(); err != nil {
		return r, err
	}
	r.after, r.workers = readMemory()
	for _, list := range [][]time.Duration{r.alone, r.aloneSteps, r.steps} {
		slices.Sort(list)
	}
	if failed != nil {
		return r, failed
	}
	return r, b.closeAll(ctx)
}

// startProfile starts the profile of -cpuprofile and returns a function that stops it.
func startProfile(k kind, o *options) (stop func() error, err error) {
	if o.profile == "" || k != plain {
		return func() error { return nil }, nil
	}
	file, err := os.Create(o.profile)
	if err != nil {
		return nil, fmt.Errorf("create the profile file: %w", err)
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return nil, fmt.Errorf("start the profile: %w", err)
	}
	return func() error {
		pprof.StopCPUProfile()
		return file.Close()
	}, nil
}
