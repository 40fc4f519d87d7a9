//go:build unix

package crashtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	if len(os.Args) == 2 && os.Args[1] == "script-worker" { // a worker of a worker
		if err := scriptworker.Main(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	crash.Main(m, begin)
}

// desk is what a worker works at.
type desk struct {
	place   place
	service *driver.Service
	journal run.Journal
	pool    *sandbox.Pool

	mu sync.Mutex
	// fates are those of the runs, by their tasks.
	fates map[string]*fate
}

// begin opens a worker's place.
func begin(ctx context.Context, p place) (crash.Desk[order, reply], reply) {
	d, err := p.open(ctx)
	if err != nil {
		return nil, failed(err)
	}
	return d, reply{}
}

// open opens a place the way that the program does: key, journal, heads, scripts.
func (p place) open(ctx context.Context) (*desk, error) {
	machinesShelf, err := newShelf()
	if err != nil {
		return nil, err
	}
	key, _, err := keyfile.LoadOrCreate(filepath.Join(p.Dir, "journal.key"))
	if err != nil {
		return nil, err
	}
	d := &desk{place: p, fates: map[string]*fate{}}
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
		d.service, err = driver.New(driver.Options{
			Journal: fatal{d.journal}, Key: key, Heads: heads, Machines: machinesShelf, Models: models{p},
			Handlers: &driver.Scripts{Sandbox: d.pool, Owner: caller().User}, Tools: tools{p},
			Owner: fmt.Sprintf("%d/%d", os.Getpid(), time.Now().UnixNano()), Alive: alive, Lease: time.Duration(p.Lease) * time.Millisecond,
		})
	}
	if err != nil {
		return nil, errors.Join(err, d.journal.Close())
	}
	return d, nil
}

// alive says whether the process of a name is there.
func alive(owner string) bool {
	text, _, _ := strings.Cut(owner, "/")
	pid, err := strconv.Atoi(text)
	return err != nil || syscall.Kill(pid, 0) == nil
}

// Close ends the worker's work.
func (d *desk) Close() error {
	ctx, stop := context.WithTimeout(context.Background(), 20*time.Second)
	defer stop()
	return errors.Join(d.pool.Close(ctx), d.journal.Close())
}

// caller is whose runs they all are.
func caller() run.Caller {
	return run.Caller{Principal: guideway.Principal{User: "ada", Client: "crashtest"}, Via: run.ViaTerminal}
}

// CarryOut implements crash.Desk. An order whose run halts is answered as such, and
// stays under way.
func (d *desk) CarryOut(ctx context.Context, o order) reply {
	f := d.fate(o)
	var r reply
	if o.Do == opGoOn {
		f.release()
		r = <-f.underWay
		f.tell(&r)
		return r
	}
	done := make(chan reply, 1)
	f.underWay = done
	go func() {
		r, err := d.do(f.in(ctx), o)
		if err != nil {
			r = failed(err)
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
	f.tell(&r)
	return r
}

// fate is that of the run that an order is for.
func (d *desk) fate(o order) *fate {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.fates[o.Task]
	if f == nil {
		f = newFate(o.Point, o.Kills)
		d.fates[o.Task] = f
	}
	return f
}

func failed(err error) reply {
	return reply{Code: guideway.ErrorCode(err), Message: err.Error()}
}

func (d *desk) do(ctx context.Context, o order) (reply, error) {
	switch o.Do {
	case opStart:
		return answered(d.service.Start(ctx, caller(), driver.StartRequest{
			Machine: machineName, Inputs: map[string]json.RawMessage{"task": json.RawMessage(strconv.Quote(o.Task))}, RequestID: o.Task,
		}))
	case opDrive:
		if err := d.service.Drive(ctx, caller().User, o.Run, nil); err != nil {
			return reply{}, err
		}
		return answered(d.service.Status(ctx, caller(), o.Run))
	case opDecide:
		return answered(d.service.Decide(ctx, caller(), o.Run, o.Decision, o.Result))
	case opResume:
		return answered(d.service.Resume(ctx, caller(), o.Run, machineengine.Limits{}))
	case opStatus:
		return answered(d.service.Status(ctx, caller(), o.Run))
	case opEvents:
		events, err := d.service.Events(ctx, caller(), o.Run)
		return reply{Events: events}, err
	case opVerify:
		report, err := d.service.Verify(ctx, o.Run)
		return reply{Report: report}, err
	default:
		return reply{}, fmt.Errorf("nobody knows how to %s", o.Do)
	}
}

func answered(s *driver.Status, err error) (reply, error) {
	if err != nil {
		return reply{}, err
	}
	return reply{Run: s.RunID, Status: s.Status, Pause: s.Pause, Output: string(s.Output), States: s.States}, nil
}

// models is the one model, behind HTTP.
type models struct{ place place }

// Model implements driver.Models.
func (m models) Model(driver.RunScope, machinedef.Level, string) (driver.SelectedModel, error) {
	return driver.SelectedModel{
		Model: openai.New(openai.Options{BaseURL: m.place.Outside + "/v1", NoStream: true, HTTP: client()}), Name: "counted",
	}, nil
}

// tools are behind HTTP, too.
type tools struct{ place place }

// Tools implements driver.Tools.
func (tools) Tools(context.Context, driver.RunScope) ([]machineengine.ToolInfo, error) {
	return infos(), nil
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
	answer, err := client().Do(r)
	if err != nil {
		return machineengine.ToolResult{}, err
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	return machineengine.ToolResult{Content: string(content)}, err
}
