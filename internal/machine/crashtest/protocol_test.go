//go:build unix

package crashtest

import (
	"testing"

	"github.com/guideway-dev/guideway"
	machineengine "github.com/guideway-dev/guideway/internal/machine/engine"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/testutil/crash"
)

// location is the configuration of a worker.
type location struct {
	Dir string `json:"dir"`
	// Postgres is the URL of a server that replaces the SQLite database.
	Postgres string `json:"postgres,omitempty"`
	// Outside is the URL of the fake model and tools.
	Outside string `json:"outside"`
	// Serves is set if the worker executes jobs like a server, with the instances of the store.
	// Otherwise the instance of a worker ends with its process.
	Serves bool `json:"serves,omitempty"`
	// Skew is the error of the worker's clock in seconds.
	Skew int `json:"skew,omitempty"`
}

// Disk implements crash.Place.
func (p location) Disk() crash.Disk { return crash.Disk{Dir: p.Dir} }

// journalKind is a kind of journal.
type journalKind struct {
	name string
	// place creates an empty journal.
	place func(t *testing.T, o *fakeServers) location
}

// journalKinds returns the journal kinds.
func journalKinds() []journalKind {
	return []journalKind{
		{"sqlite", func(t *testing.T, o *fakeServers) location {
			t.Helper()
			return location{Dir: crash.Dir(t), Outside: o.URL}
		}},
		{"postgres", func(t *testing.T, o *fakeServers) location {
			t.Helper()
			return location{Dir: crash.Dir(t), Outside: o.URL, Postgres: crash.EmptyPostgres(t)}
		}},
	}
}

// order is a command to a worker.
type order struct {
	Do  op     `json:"do"`
	Run string `json:"run,omitempty"`
	// Task identifies the run before it has an id.
	Task string `json:"task,omitempty"`
	// Point is the number of the point in this worker at which the run halts. Kills makes
	// the worker kill itself there. Only the first order for a run sets them.
	Point    int                    `json:"point,omitempty"`
	Kills    bool                   `json:"kills,omitempty"`
	Decision machineengine.Decision `json:"decision,omitempty"`
	Result   string                 `json:"result,omitempty"`
}

// op is the operation of an order.
type op string

const (
	opStart  op = "start"
	opDrive  op = "drive"
	opDecide op = "decide"
	opResume op = "resume"
	opStatus op = "status"
	// opWait waits until the run rests, for at most a few seconds.
	opWait   op = "wait"
	opEvents op = "events"
	opVerify op = "verify"
	// opGoOn lets a halted run continue, and is answered with the reply to the order in
	// progress.
	opGoOn op = "go on"
)

// reply acknowledges an order.
type reply struct {
	Code    guideway.Code `json:"code,omitempty"`
	Message string        `json:"message,omitempty"`

	Run    string               `json:"run,omitempty"`
	Status machineengine.Status `json:"status,omitempty"`
	Pause  *machineengine.Pause `json:"pause,omitempty"`
	Output string               `json:"output,omitempty"`
	States []string             `json:"states,omitempty"`
	Events []run.Event          `json:"events,omitempty"`
	Report *run.Report          `json:"report,omitempty"`
	// Halted is set if the run is halted at its point while the order is in progress.
	Halted bool `json:"halted,omitempty"`
	// Points is the number of points that the run passed.
	Points int `json:"points"`
	// Within is set if the point is between the decision on a call and the call.
	Within bool `json:"within,omitempty"`
}

// OK reports whether the order succeeded.
func (r reply) OK() bool { return r.Code == "" }

// worker is a process that drives runs.
type worker = crash.Worker[order, reply]

// startWorker starts a worker.
func startWorker(t testing.TB, p location) *worker {
	t.Helper()
	return crash.StartWorker[order, reply](t, p)
}
