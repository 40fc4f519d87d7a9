package crashtest

import (
	"testing"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/testutil/crash"
)

// place is where a worker finds its journal, as one value of its environment.
type place struct {
	// Dir holds the database, the key and the heads.
	Dir string `json:"dir"`
	// Postgres, if set, is the URL of the server that takes the database's part.
	Postgres string `json:"postgres,omitempty"`
	// Room, if not 0, bounds the directory to so many bytes: the worker mounts a
	// file system of its own there, which is gone when it ends.
	Room int64 `json:"room,omitempty"`
	// Sealed has the worker see the directory read-only.
	Sealed bool `json:"sealed,omitempty"`
}

// Disk implements crash.Place.
func (p place) Disk() crash.Disk { return crash.Disk{Dir: p.Dir, Room: p.Room, ReadOnly: p.Sealed} }

// order is a line on a worker's standard input.
type order struct {
	Do op `json:"do"`

	Handle string `json:"handle,omitempty"`
	Run    string `json:"run,omitempty"`
	// Workflow is the one to start, that of steps if empty.
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

// op is what a worker does.
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
	// opFill takes the room of a bounded directory but for Room bytes, opDrain
	// gives it back. opReopen closes the journal and opens it again.
	opFill   op = "fill"
	opDrain  op = "drain"
	opReopen op = "reopen"
)

// reply is a line on a worker's standard output: the acknowledgement of what is
// in it.
type reply struct {
	// Code, Rule, Message and Fix are of an error.
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

// OK says that the order was carried out.
func (r reply) OK() bool { return r.Code == "" }

// worker is a process that has a journal open.
type worker = crash.Worker[order, reply]

// hire starts a worker.
func hire(t testing.TB, p place, front ...string) *worker {
	t.Helper()
	return crash.StartWorker[order, reply](t, p, front...)
}

// crowdOrder has a worker play many clients at once.
type crowdOrder struct {
	// Clients is how many, Steps how many commands each gets through.
	Clients int `json:"clients"`
	Steps   int `json:"steps"`
	// Name is that of the worker, for the texts that it hands in.
	Name string `json:"name"`
	// Shared are runs that the clients of all workers race for.
	Shared []string `json:"shared"`
}

// crowdReply is what the clients saw.
type crowdReply struct {
	// Runs are the runs that each client had for itself, with the outputs that
	// were acknowledged, in order.
	Runs map[string][]string `json:"runs"`
	// Won are the acknowledged outputs of the shared runs.
	Won map[string][]string `json:"won"`
	// Lost counts refusals in the races, by rule.
	Lost map[string]int `json:"lost"`
	// Took is the time of each acknowledged command.
	Took []time.Duration `json:"took"`
	// Errors are answers that are no refusal.
	Errors []string `json:"errors"`
}
