package machines

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/guideway-dev/guideway/bench/measure"
	machinedef "github.com/guideway-dev/guideway/internal/machine/definition"
	"github.com/guideway-dev/guideway/internal/machine/driver"
	machineengine "github.com/guideway-dev/guideway/internal/machine/engine"
	"github.com/guideway-dev/guideway/internal/machine/llm"
	"github.com/guideway-dev/guideway/internal/machine/llm/openai"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/store/postgres"
	"github.com/jackc/pgx/v5" //nolint:depguard // counts the transactions of the server
)

// The calls of one run of the cluster: two states, each with a request that calls a tool and
// one that ends the state.
const (
	runRequests = 4
	runTools    = 2
)

const clusterMachine = `{
  "workflow_name": "cluster", "description": "Two states with a tool call each.", "inputs": [],
  "output": {"name": "done", "type": "string", "description": "Nothing."},
  "contexts": [{"name": "talk", "starting_messages": [{"role": "user", "content": "Go."}]}],
  "agents": [{"agent_role": "worker", "context": "talk", "role": "assistant"}],
  "tools": {"count": {"retry": "key"}}, "budgets": {"calls": 1000},
  "states": [
    {"name": "start", "agent": "worker", "max_retries": 100, "next_state": "again"},
    {"name": "again", "agent": "worker", "max_retries": 100}, {"name": "stop"}]
}`

// cluster is the configuration of a worker.
type cluster struct {
	// Postgres and Outside are the URLs of the database, and of the model and the tool.
	Postgres, Outside string
	// Runs is the number of runs that a worker drives at a time.
	Runs int
}

// openService opens the store and returns a service on it.
func (c cluster) openService(ctx context.Context) (*driver.Service, *postgres.Store, error) {
	d, found := machinedef.Parse(machinedef.Files{
		Config: machinedef.File{Path: "cluster.json", Data: []byte(clusterMachine)},
		Roles:  []machinedef.File{{Path: "cluster/roles.json", Data: []byte(`{"worker": {"systemMessage": "Work.", "includedTools": ["count"]}}`)}},
	})
	if d == nil {
		return nil, nil, fmt.Errorf("the machine does not parse: %+v", found)
	}
	store, err := postgres.Open(ctx, postgres.Options{URL: c.Postgres})
	if err != nil {
		return nil, nil, err
	}
	service, err := driver.New(driver.Options{
		Journal: store, Store: store, Key: run.Key(strings.Repeat("k", run.KeySize)), Machines: oneMachine{d}, Models: c, Tools: c, Schedule: true,
		Handlers: &driver.Scripts{}, Logger: slog.Default(),
	})
	return service, store, err
}

// oneMachine implements driver.Machines.
type oneMachine struct{ *machinedef.Definition }

// Machine implements driver.Machines.
func (m oneMachine) Machine(context.Context, string) (*machinedef.Definition, error) {
	return m.Definition, nil
}

// Model implements driver.Models.
func (c cluster) Model(driver.RunScope, machinedef.Level, string) (driver.SelectedModel, error) {
	return driver.SelectedModel{Model: openai.New(openai.Options{BaseURL: c.Outside + "/v1", NoStream: true}), Name: "delayed"}, nil
}

// Tools implements driver.Tools.
func (cluster) Tools(context.Context, driver.RunScope) ([]machineengine.ToolInfo, error) {
	return []machineengine.ToolInfo{{Definition: llm.Definition{Name: "count", Parameters: json.RawMessage(`{"type":"object"}`)}}}, nil
}

// Call implements driver.Tools.
func (c cluster) Call(ctx context.Context, _ driver.RunScope, call machineengine.ToolCall) (machineengine.ToolResult, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.Outside+"/tool", strings.NewReader(call.Key))
	if err != nil {
		return machineengine.ToolResult{}, err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return machineengine.ToolResult{}, err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	return machineengine.ToolResult{Content: string(text)}, err
}

// runClusterWorker executes runs until standard input ends.
func runClusterWorker(ctx context.Context, text string) error {
	var c cluster
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return err
	}
	http.DefaultTransport.(*http.Transport).MaxIdleConnsPerHost = c.Runs
	service, store, err := c.openService(ctx)
	if err != nil {
		return err
	}
	b := driver.NewBackground(service, c.Runs, slog.Default())
	_, _ = io.Copy(io.Discard, os.Stdin) //nolint:forbidigo // a worker is a process
	b.Close()
	return store.Close()
}

// outside is the model and the tool. The tool executes each key once.
type outside struct {
	answers time.Duration

	mu                   sync.Mutex
	requests, deliveries int
	keys                 map[string]bool
}

func (o *outside) serveModel(w http.ResponseWriter, r *http.Request) {
	var body struct{ Messages []llm.Message }
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	o.mu.Lock()
	o.requests++
	o.mu.Unlock()
	select {
	case <-time.After(o.answers):
	case <-r.Context().Done():
		return
	}
	answer := llm.Response{Message: llm.Message{Role: llm.Assistant, Content: "done"}, Finish: llm.FinishStop, Usage: llm.Usage{Input: 10, Output: 5}}
	if body.Messages[len(body.Messages)-1].Role != llm.Tool {
		answer.Finish, answer.Message.Content = llm.FinishTools, ""
		answer.Message.ToolCalls = []llm.ToolCall{{ID: "c", Type: "function", Function: llm.Function{Name: "count", Arguments: "{}"}}}
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(answer.Completion()) // the client may have been killed
}

func (o *outside) serveTool(w http.ResponseWriter, r *http.Request) {
	key, _ := io.ReadAll(r.Body)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.deliveries++
	o.keys[string(key)] = true
	_, _ = io.WriteString(w, "done")
}

// clusterWorker is a running worker.
type clusterWorker struct {
	cmd *exec.Cmd
	in  io.Closer
	out *bytes.Buffer
}

func startClusterWorker(c cluster) (*clusterWorker, error) {
	text, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	w := &clusterWorker{cmd: exec.Command(os.Args[0], "machines", "-worker", string(text)), out: &bytes.Buffer{}} //nolint:gosec,noctx // this program; it ends with its input
	w.cmd.Stderr = w.out
	if w.in, err = w.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	return w, w.cmd.Start()
}

// clusterResult has the figures of a measurement.
type clusterResult struct {
	started, ended                        time.Duration
	kills, requests, deliveries, toolKeys int
	// transactions are those of the database, memory the highest sum of the private memory of
	// the workers in bytes.
	transactions, memory int64
}

// measureCluster drives runs by several workers on one database.
func measureCluster(ctx context.Context, o *options) (r clusterResult, err error) {
	schema := fmt.Sprint("bench_", time.Now().UnixNano())
	db, err := pgx.Connect(ctx, o.postgres)
	if err != nil {
		return r, err
	}
	defer func() {
		_, dropped := db.Exec(ctx, "drop schema if exists "+schema+" cascade")
		err = errors.Join(err, dropped, db.Close(ctx))
	}()
	out := &outside{answers: o.answers, keys: map[string]bool{}}
	address, stop, err := out.serve(ctx)
	if err != nil {
		return r, err
	}
	defer stop()
	sign := "?"
	if strings.Contains(o.postgres, "?") {
		sign = "&"
	}
	c := cluster{Postgres: o.postgres + sign + "search_path=" + schema, Outside: address, Runs: 2*o.machines/o.workers + 1}
	service, store, err := c.openService(ctx)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	workers := make([]*clusterWorker, o.workers)
	for i := range workers {
		if workers[i], err = startClusterWorker(c); err != nil {
			return r, err
		}
	}
	defer func() {
		for _, w := range workers {
			_ = w.in.Close()
			_ = w.cmd.Wait()
		}
	}()
	before, err := countNumber(ctx, db, sqlTransactions)
	if err != nil {
		return r, err
	}
	begun := time.Now()
	if err := startRuns(ctx, service, o.machines); err != nil {
		return r, err
	}
	r.started = time.Since(begun)
	if err := r.awaitRuns(ctx, o, c, workers, func() (int64, error) {
		return countNumber(ctx, db, `select count(*) from `+schema+`.runs where status in ('completed', 'aborted')`)
	}); err != nil {
		return r, err
	}
	r.ended = time.Since(begun)
	after, err := countNumber(ctx, db, sqlTransactions)
	r.transactions, r.requests, r.deliveries, r.toolKeys = after-before, out.requests, out.deliveries, len(out.keys)
	return r, err
}

const sqlTransactions = `select xact_commit from pg_stat_database where datname = current_database()`

// serve starts the server of the model and the tool.
func (o *outside) serve(ctx context.Context) (address string, stop func(), err error) {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", o.serveModel)
	mux.HandleFunc("POST /tool", o.serveTool)
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(l) }()
	return "http://" + l.Addr().String(), func() { _ = server.Close() }, nil
}

// startRuns starts runs from several clients.
func startRuns(ctx context.Context, service *driver.Service, runs int) error {
	const clients = 8
	return measure.RunClients(clients, func(client int) error {
		for n := client; n < runs; n += clients {
			if _, err := service.Start(ctx, ownerCaller(), driver.StartRequest{Machine: "cluster"}); err != nil {
				return err
			}
		}
		return nil
	})
}

// awaitRuns waits until all runs have ended. With chaos, it kills and replaces a worker at each
// interval, until nine tenths of the runs have ended.
func (r *clusterResult) awaitRuns(ctx context.Context, o *options, c cluster, workers []*clusterWorker, countEnded func() (int64, error)) error {
	killed, all := time.Now(), int64(o.machines)
	for {
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return ctx.Err()
		}
		ended, err := countEnded()
		if err != nil || ended == all {
			return err
		}
		r.memory = max(r.memory, privateMemory(workers))
		if o.chaos == 0 || time.Since(killed) < o.chaos || ended >= all*9/10 {
			continue
		}
		i := r.kills % len(workers)
		_ = workers[i].cmd.Process.Kill()
		_ = workers[i].cmd.Wait()
		if workers[i], err = startClusterWorker(c); err != nil {
			return err
		}
		r.kills, killed = r.kills+1, time.Now()
	}
}

// privateMemory returns the sum of the private memory of workers.
func privateMemory(workers []*clusterWorker) (sum int64) {
	for _, w := range workers {
		if m, err := measure.MemoryOf(w.cmd.Process.Pid); err == nil {
			sum += m.Own
		}
	}
	return sum
}

func countNumber(ctx context.Context, db *pgx.Conn, query string) (n int64, err error) {
	err = db.QueryRow(ctx, query).Scan(&n)
	return n, err
}

// formatCluster returns the figures as text. It is an error if a tool was not called once.
func formatCluster(o *options, r clusterResult) (string, error) {
	steps := o.machines * (runRequests + runTools)
	text := fmt.Sprintf("%d runs over %d workers, answers after %s, %d workers killed\n", o.machines, o.workers, o.answers, r.kills) +
		fmt.Sprintf("  started in %.1f s, all ended after %.1f s; the answers of one run take %s\n", r.started.Seconds(), r.ended.Seconds(), time.Duration(runRequests)*o.answers) +
		fmt.Sprintf("  %.1f transactions for each of %d steps (requests and tool calls)\n", float64(r.transactions)/float64(steps), steps) +
		fmt.Sprintf("  %d MB of private memory in all workers, %d kB for each run\n", r.memory>>20, r.memory>>10/int64(o.machines)) +
		fmt.Sprintf("  %d requests (%d without repetitions), %d tools executed (want %d), %d deliveries\n", r.requests, o.machines*runRequests, r.toolKeys, o.machines*runTools, r.deliveries)
	if r.toolKeys != o.machines*runTools || r.kills == 0 && r.deliveries != r.toolKeys {
		return text, errors.New("not every tool was called once")
	}
	return text, nil
}
