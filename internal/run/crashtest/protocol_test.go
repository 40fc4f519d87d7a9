package crashtest

import (
	"testing"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/testutil/crash"
)

// workerPlace is the storage of a worker, which gets it as an environment variable.
type workerPlace struct {
	// Dir holds the database, the key and the heads.
	Dir string `json:"dir"`
	// Postgres, if set, is the URL of the server that replaces the database file.
	Postgres string `json:"postgres,omitempty"`
	// Room, if not 0, bounds the directory in bytes: the worker mounts a private file
	// system there, which disappears when the worker ends.
	Room int64 `json:"room,omitempty"`
	// Sealed makes the directory read-only for the worker.
	Sealed bool `json:"sealed,omitempty"`
}

// Disk implements crash.Place.
func (p workerPlace) Disk() crash.Disk {
	return crash.Disk{Dir: p.Dir, Room: p.Room, ReadOnly: p.Sealed}
}

// order is a line on a worker's standard input.
type order struct {
	Do op `json:"do"`

	Handle string `json:"handle,omitempty"`
	Run    string `json:"run,omitempty"`
	// Workflow is the workflow to start. The default is the step workflow.
	Workflow string         `json:"workflow,omitempty"`
	Request  string         `json:"request,omitempty"`
	Goal     string         `json:"goal,omitempty"`
	Output   string         `json:"output,omitempty"`
	Notes    string         `json:"notes,omitempty"`
	Context  map[string]any `json:"context,omitempty"`
	Option   string         `json:"option,omitempty"`
	Skip     string         `json:"skip,omitempty"`
	Room     int64          `json:"room,omitempty"`
	Crowd    *crowdOrder    `json:"crowd,omitempty"`
}

// op is an operation of a worker.
type op string

const (
	opStart    op = "start"
	opContinue op = "continue"
	opAbort    op = "abort"
	opStatus   op = "status"
	opEvents   op = "events"
	opVerify   op = "verify"
	opRestore  op = "accept-restore"
	opCrowd    op = "crowd"
	// opFill fills a bounded directory except for Room bytes, opDrain frees the space.
	// opReopen closes the journal and opens it again.
	opFill   op = "fill"
	opDrain  op = "drain"
	opReopen op = "reopen"
)

// reply is a line on a worker's standard output, which acknowledges the result in it.
type reply struct {
	// Code, Rule, Message and Fix describe the error, if any.
	Code    guideway.Code `json:"code,omitempty"`
	Rule    string        `json:"rule,omitempty"`
	Message string        `json:"message,omitempty"`
	Fix     string        `json:"fix,omitempty"`

	Run      string        `json:"run,omitempty"`
	Handle   string        `json:"handle,omitempty"`
	Status   engine.Status `json:"status,omitempty"`
	Step     string        `json:"step,omitempty"`
	Replayed bool          `json:"replayed,omitempty"`

	Events []run.Event `json:"events,omitempty"`
	Report *run.Report `json:"report,omitempty"`
	Crowd  *crowdReply `json:"crowd,omitempty"`
}

// OK reports whether the order succeeded.
func (r reply) OK() bool { return r.Code == "" }

// worker is a process that has a journal open.
type worker = crash.Worker[order, reply]

// startWorker starts a worker.
func startWorker(t testing.TB, p workerPlace, front ...string) *worker {
	t.Helper()
	return crash.StartWorker[order, reply](t, p, front...)
}

// crowdOrder is an order to run many clients concurrently.
type crowdOrder struct {
	// Clients is the number of clients, Steps the number of commands of each.
	Clients int `json:"clients"`
	Steps   int `json:"steps"`
	// Name is the name of the worker in the texts that it submits.
	Name string `json:"name"`
	// Shared are runs that the clients of all workers use.
	Shared []string `json:"shared"`
}

// crowdReply has the results of the clients.
type crowdReply struct {
	// Runs has the acknowledged outputs of the private run of each client, in order.
	Runs map[string][]string `json:"runs"`
	// Won are the acknowledged outputs of the shared runs.
	Won map[string][]string `json:"won"`
	// Lost counts refusals in the races, by rule.
	Lost map[string]int `json:"lost"`
	// Took is the time of each acknowledged command.
	Took []time.Duration `json:"took"`
	// Errors are errors that are not refusals.
	Errors []string `json:"errors"`
}
