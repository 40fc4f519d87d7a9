//go:build unix

package crashtest

import (
	"testing"

	"github.com/guideway-dev/guideway"
	machineengine "github.com/guideway-dev/guideway/internal/machine/engine"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/testutil/crash"
)

// place is where a worker finds its journal.
type place struct {
	Dir string `json:"dir"`
	// Postgres, if set, is the URL of the server that takes the database's part.
	Postgres string `json:"postgres,omitempty"`
	// Outside is the URL of the model and the tools.
	Outside string `json:"outside"`
	// Lease is how long one holds, in milliseconds; 0 is as usual.
	Lease int `json:"lease,omitempty"`
}

// Disk implements crash.Place.
func (p place) Disk() crash.Disk { return crash.Disk{Dir: p.Dir} }

// store is a kind of journal.
type store struct {
	name string
	// place makes an empty one.
	place func(t *testing.T, o *outside) place
}

// stores are the kinds of journals.
func stores() []store {
	return []store{
		{"sqlite", func(t *testing.T, o *outside) place {
			t.Helper()
			return place{Dir: crash.Dir(t), Outside: o.URL}
		}},
		{"postgres", func(t *testing.T, o *outside) place {
			t.Helper()
			return place{Dir: crash.Dir(t), Outside: o.URL, Postgres: crash.EmptyPostgres(t)}
		}},
	}
}

// order is what a worker is to do.
type order struct {
	Do  op     `json:"do"`
	Run string `json:"run,omitempty"`
	// Task is what the run is known by before it has an id.
	Task string `json:"task,omitempty"`
	// Point is the one at which the run halts, of those that it comes by in this
	// worker; Kills has the worker end itself there. The first order for a run
	// decides.
	Point    int                    `json:"point,omitempty"`
	Kills    bool                   `json:"kills,omitempty"`
	Decision machineengine.Decision `json:"decision,omitempty"`
	Result   string                 `json:"result,omitempty"`
}

// op is what a worker does.
type op string

const (
	opStart  op = "start"
	opDrive  op = "drive"
	opDecide op = "decide"
	opResume op = "resume"
	opStatus op = "status"
	opEvents op = "events"
	opVerify op = "verify"
	// opGoOn lets a run go on that has halted, and gives the reply to the order that
	// was under way.
	opGoOn op = "go on"
)

// reply is the acknowledgement of what is in it.
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
	// Halted says that the run has come to its point, and that the order is still
	// under way.
	Halted bool `json:"halted,omitempty"`
	// Points counts those that the run has come by.
	Points int `json:"points"`
	// Within says that the run's own one lay between the decision to call
	// something and the call.
	Within bool `json:"within,omitempty"`
}

// OK says that the order was carried out.
func (r reply) OK() bool { return r.Code == "" }

// worker is a process that drives runs.
type worker = crash.Worker[order, reply]

// hire starts a worker.
func hire(t testing.TB, p place) *worker {
	t.Helper()
	return crash.Hire[order, reply](t, p)
}
