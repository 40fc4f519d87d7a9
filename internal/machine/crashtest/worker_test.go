//go:build unix

package crashtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/cluster"
	"github.com/guideway-dev/guideway/internal/hooks/sandbox"
	scriptworker "github.com/guideway-dev/guideway/internal/hooks/sandbox/worker"
	machinedef "github.com/guideway-dev/guideway/internal/machine/definition"
	"github.com/guideway-dev/guideway/internal/machine/driver"
	machineengine "github.com/guideway-dev/guideway/internal/machine/engine"
	"github.com/guideway-dev/guideway/internal/machine/llm/openai"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/store/keyfile"
	"github.com/guideway-dev/guideway/internal/store/postgres"
	"github.com/guideway-dev/guideway/internal/store/rollbackguard"
	"github.com/guideway-dev/guideway/internal/store/sqlite"
	"github.com/guideway-dev/guideway/internal/testutil/crash"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "script-worker" { // a worker starts its script worker from this binary
		if err := scriptworker.Main(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	crash.Main(m, openLocation)
}

// store is the store of a worker.
type store interface {
	run.Journal
	cluster.Store
}

// handler executes the orders of a worker.
type handler struct {
	place   location
	service *driver.Service
	// background executes jobs; nil if the worker does not serve.
	background *driver.Background
	journal    store
	pool       *sandbox.Pool

	mu sync.Mutex
	// breakpoints maps tasks to the breakpoints of their runs.
	breakpoints map[string]*breakpoint
}

// openLocation returns the handler of a worker.
func openLocation(ctx context.Context, p location) (crash.Handler[order, reply], reply) {
	d, err := p.openHandler(ctx)
	if err != nil {
		return nil, errorReply(err)
	}
	return d, reply{}
}

// openHandler opens a location as the program does: key, journal, heads, scripts.
func (p location) openHandler(ctx context.Context) (*handler, error) {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	machinesShelf, err := newShelf()
	if err != nil {
		return nil, err
	}
	key, _, err := keyfile.LoadOrCreate(filepath.Join(p.Dir, "journal.key"))
	if err != nil {
		return nil, err
	}
	d := &handler{place: p, breakpoints: map[string]*breakpoint{}}
	if p.Postgres != "" {
		d.journal, err = postgres.Open(ctx, postgres.Options{URL: p.Postgres})
	} else {
		d.journal, err = sqlite.Open(ctx, sqlite.Options{Path: filepath.Join(p.Dir, "guideway.db")})
	}
	if err != nil {
		return nil, err
	}
	heads, err := rollbackguard.Open(filepath.Join(p.Dir, "heads"), key)
	if err == nil {
		d.pool, err = sandbox.NewPool(sandbox.Options{Workers: 1})
	}
	if err == nil {
		o := driver.Options{
			Journal: pointJournal{d.journal}, Key: key, Heads: heads, Machines: machinesShelf, Models: models{p},
			Handlers: &driver.Scripts{Sandbox: d.pool, Owner: testCaller().User}, Tools: tools{p},
			Owner: strconv.Itoa(os.Getpid()), Store: processes{p}, Schedule: p.Serves,
			Now: func() time.Time { return time.Now().Add(time.Duration(p.Skew) * time.Second) },
		}
		if p.Serves {
			o.Owner, o.Store, o.Logger = "", d.journal, log
		}
		d.service, err = driver.New(o)
	}
	if err != nil {
		return nil, errors.Join(err, d.journal.Close())
	}
	if p.Serves {
		d.background = driver.NewBackground(d.service, 100, log)
	}
	return d, nil
}

// processes implements cluster.Store without jobs. An instance exists as long as its process,
// unless the test has declared it as ended.
type processes struct{ place location }

// declareEnded declares a stopped process as ended.
func (p processes) declareEnded(t *testing.T, pid int) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(p.place.Dir, fmt.Sprint("ended-", pid)), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

func (p processes) Beat(ctx context.Context, id string, _ bool) (known bool, cancelled []string, err error) {
	known, err = p.HasInstance(ctx, id)
	return known, nil, err
}

func (p processes) HasInstance(_ context.Context, id string) (bool, error) {
	pid, err := strconv.Atoi(id)
	if err != nil {
		return false, err
	}
	_, err = os.Stat(filepath.Join(p.place.Dir, "ended-"+id))
	return err != nil && syscall.Kill(pid, 0) == nil, nil
}

func (processes) Schedule(context.Context, run.Job) error            { return nil }
func (processes) ReapInstances(context.Context, time.Duration) error { return nil }
func (processes) LeaveInstance(context.Context, string) error        { return nil }
func (processes) WorkJobs(context.Context, string, int, func(context.Context, run.Job) error) error {
	return nil
}

// Close releases the handler.
func (d *handler) Close() error {
	ctx, stop := context.WithTimeout(context.Background(), 20*time.Second)
	defer stop()
	if d.background != nil {
		d.background.Close()
	}
	return errors.Join(d.pool.Close(ctx), d.journal.Close())
}

// testCaller returns the owner of all runs.
func testCaller() run.Caller {
	return run.Caller{Principal: guideway.Principal{User: "ada", Client: "crashtest"}, Via: run.ViaTerminal}
}

// Handle implements crash.Handler. If the run halts, it replies immediately, and the order
// stays in progress.
func (d *handler) Handle(ctx context.Context, o order) reply {
	f := d.findBreakpoint(o)
	var r reply
	if o.Do == opGoOn {
		f.resumeRun()
		r = <-f.pendingReply
		f.fillReply(&r)
		return r
	}
	done := make(chan reply, 1)
	f.pendingReply = done
	go func() {
		r, err := d.execute(f.withContext(ctx), o)
		if err != nil {
			r = errorReply(err)
		}
		done <- r
	}()
	select {
	case r = <-done:
	case <-f.halted:
		select {
		case r = <-done:
		default:
			r.Halted = true
		}
	}
	f.fillReply(&r)
	return r
}

// findBreakpoint returns the breakpoint of an order's run.
func (d *handler) findBreakpoint(o order) *breakpoint {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.breakpoints[o.Task]
	if f == nil {
		f = newBreakpoint(o.Point, o.Kills)
		d.breakpoints[o.Task] = f
	}
	return f
}

func errorReply(err error) reply {
	return reply{Code: guideway.ErrorCode(err), Message: err.Error()}
}

func (d *handler) execute(ctx context.Context, o order) (reply, error) {
	switch o.Do {
	case opStart:
		return statusReply(d.service.Start(ctx, testCaller(), driver.StartRequest{
			Machine: machineName, Inputs: map[string]json.RawMessage{"task": json.RawMessage(strconv.Quote(o.Task))}, RequestID: o.Task,
		}))
	case opDrive:
		if err := d.service.DriveAttended(ctx, testCaller().User, o.Run, nil); err != nil {
			return reply{}, err
		}
		return statusReply(d.service.Status(ctx, testCaller(), o.Run))
	case opDecide:
		return statusReply(d.service.Decide(ctx, testCaller(), o.Run, driver.OutcomeAnswer{Decision: o.Decision, Result: o.Result}))
	case opResume:
		return statusReply(d.service.Resume(ctx, testCaller(), o.Run, machineengine.Limits{}))
	case opWait:
		return statusReply(d.background.Wait(ctx, testCaller(), o.Run, 5*time.Second))
	case opStatus:
		return statusReply(d.service.Status(ctx, testCaller(), o.Run))
	case opEvents:
		events, err := d.service.Events(ctx, testCaller(), o.Run)
		return reply{Events: events}, err
	case opVerify:
		report, err := d.service.Verify(ctx, o.Run)
		return reply{Report: report}, err
	default:
		return reply{}, fmt.Errorf("unknown operation %q", o.Do)
	}
}

func statusReply(s *driver.Status, err error) (reply, error) {
	if err != nil {
		return reply{}, err
	}
	return reply{Run: s.RunID, Status: s.Status, Pause: s.Pause, Output: string(s.Output), States: s.States}, nil
}

// models implements driver.Models with a model that is served over HTTP.
type models struct{ place location }

// Model implements driver.Models.
func (m models) Model(driver.RunScope, machinedef.Level, string) (driver.SelectedModel, error) {
	return driver.SelectedModel{
		Model: openai.New(openai.Options{BaseURL: m.place.Outside + "/v1", NoStream: true, HTTP: newClient()}), Name: "counted",
	}, nil
}

// tools implements driver.Tools with tools that are served over HTTP.
type tools struct{ place location }

// Tools implements driver.Tools.
func (tools) Tools(context.Context, driver.RunScope) ([]machineengine.ToolInfo, error) {
	return toolInfos(), nil
}

// Call implements driver.Tools.
func (t tools) Call(ctx context.Context, _ driver.RunScope, c machineengine.ToolCall) (machineengine.ToolResult, error) {
	text, err := json.Marshal(c)
	if err != nil {
		return machineengine.ToolResult{}, err
	}
	run, _, _ := strings.Cut(c.Key, "-")
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, t.place.Outside+"/tool/"+run, bytes.NewReader(text))
	if err != nil {
		return machineengine.ToolResult{}, err
	}
	answer, err := newClient().Do(r)
	if err != nil {
		return machineengine.ToolResult{}, err
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	return machineengine.ToolResult{Content: string(content)}, err
}
