// Package notice tells receivers, which are webhooks and commands, that something waits for
// a person (DESIGN section 16).
//
// Nothing is written while an agent's call is answered: notices are derived from the feed of
// the journal. Each receiver has an outbox, a file with its position in the feed and the
// notices that it has not accepted yet. The position moves after the notices are in the
// file, and a notice leaves the file after its receiver accepted it, so each notice is
// delivered at least once, with the same id each time. A process holds the lock of the file
// while it delivers, so that only one process delivers.
package notice

import (
	"context"
	"fmt"
	"time"

	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/run"
)

// Type is the type of a notice.
type Type string

// The types. TypeTest is sent only by guideway notify test.
const (
	TypeGate             Type = "gate"
	TypeCallHeld         Type = "call-held"
	TypeRunCompleted     Type = "run-completed"
	TypeRunAborted       Type = "run-aborted"
	TypeMachineWaiting   Type = "machine-waiting"
	TypeMachinePaused    Type = "machine-paused"
	TypeMachineCompleted Type = "machine-completed"
	TypeMachineCancelled Type = "machine-cancelled"
	TypeTest             Type = "test"
)

// Notice is a message to people. Its members are the body of a webhook.
type Notice struct {
	// ID is the same each time the notice is sent, also by another process.
	ID   string    `json:"id"`
	Type Type      `json:"type"`
	At   time.Time `json:"at"`
	// Text is one sentence for people.
	Text string `json:"text"`
	// URL is the page of the dashboard, if a server is running.
	URL string `json:"url,omitempty"`
	// Command is the command that shows or answers, in a terminal, what the notice is
	// about.
	Command    string `json:"command,omitempty"`
	User       string `json:"user,omitempty"`
	Project    string `json:"project,omitempty"`
	RunID      string `json:"runId,omitempty"`
	WorkflowID string `json:"workflowId,omitempty"`
	Step       string `json:"step,omitempty"`
	Goal       string `json:"goal,omitempty"`
	CallID     string `json:"callId,omitempty"`
	// Page is the path of the page in the dashboard. URL is set when the notice is sent,
	// because the address of the dashboard may change until then.
	Page string `json:"page,omitempty"`
}

// Source is a source of notices.
type Source interface {
	// Name identifies the source in outboxes.
	Name() string
	// Read returns the notices after a position, in order, and the next position. With a
	// negative position it returns the notices of everything that waits now.
	Read(ctx context.Context, after int64) (list []Notice, next int64, err error)
	// Watch sends a value soon after each change, until ctx ends. The channel is nil if the
	// source cannot be watched now.
	Watch(ctx context.Context) <-chan struct{}
}

// Journal is the part of a journal that notices are read from.
type Journal interface {
	run.Feed
	Run(ctx context.Context, id string) (run.Record, error)
	Runs(ctx context.Context, f run.Filter) ([]run.Record, error)
}

// maxChanges is the number of changes that are read at once, and maxWaiting the number of
// waiting runs.
const (
	maxChanges = 200
	maxWaiting = 100
)

// JournalSource reads notices from a journal of runs.
type JournalSource struct {
	// SourceName is the name of the source.
	SourceName string
	// Open returns the journal, or nil if none exists yet.
	Open func(ctx context.Context) (Journal, error)
	// Describe returns the notice about a run after its last change, without its id. It
	// returns false if no notice is needed.
	Describe func(r *run.Record) (Notice, bool)
}

// Name implements Source.
func (s *JournalSource) Name() string { return s.SourceName }

// Watch implements Source.
func (s *JournalSource) Watch(ctx context.Context) <-chan struct{} {
	journal, err := s.Open(ctx)
	if err != nil || journal == nil {
		return nil
	}
	return journal.Watch(ctx)
}

// Read implements Source. If the feed no longer has the position, Read continues with
// everything that waits now.
func (s *JournalSource) Read(ctx context.Context, after int64) (list []Notice, next int64, err error) {
	journal, err := s.Open(ctx)
	if err != nil || journal == nil {
		return nil, after, err
	}
	if after < 0 {
		return s.readWaiting(ctx, journal)
	}
	changes, reset, err := journal.Changes(ctx, after, maxChanges)
	if err != nil {
		return nil, after, err
	}
	if reset {
		return s.readWaiting(ctx, journal)
	}
	for _, c := range changes {
		if c.Subject == run.SubjectRun {
			r, err := journal.Run(ctx, c.ID)
			if err != nil {
				return nil, after, err
			}
			// A run that has changed again is described at its last change.
			if r.Seq == c.Seq {
				list = s.appendNotice(list, &r)
			}
		}
		after = c.Pos
	}
	return list, after, nil
}

// readWaiting returns the notices of the waiting runs, and the end of the feed.
func (s *JournalSource) readWaiting(ctx context.Context, journal Journal) (list []Notice, next int64, err error) {
	// The position is read first: a change after it is read again, not missed.
	if next, err = journal.Latest(ctx); err != nil {
		return nil, -1, err
	}
	runs, err := journal.Runs(ctx, run.Filter{Statuses: []engine.Status{engine.StatusWaiting}, Limit: maxWaiting})
	if err != nil {
		return nil, -1, err
	}
	for i := range runs {
		list = s.appendNotice(list, &runs[len(runs)-1-i])
	}
	return list, next, nil
}

func (s *JournalSource) appendNotice(list []Notice, r *run.Record) []Notice {
	n, ok := s.Describe(r)
	if !ok {
		return list
	}
	n.ID = fmt.Sprintf("n_%s_%d", r.ID, r.Seq)
	n.At, n.User, n.Project, n.RunID, n.WorkflowID, n.Goal = r.Updated, r.User, r.Project.Path, r.ID, r.Workflow, r.Goal
	return append(list, n)
}

// DescribeRun describes a guided run.
func DescribeRun(r *run.Record) (Notice, bool) {
	n := Notice{Step: r.Step, Page: "/runs/" + r.ID}
	switch {
	case r.Person:
		n.Type, n.Command = TypeGate, "guideway runs approve "+r.ID
		n.Text = fmt.Sprintf("The workflow %s waits for your approval: %s", r.Name, r.Title)
	case r.Status == engine.StatusCompleted:
		n.Type, n.Command = TypeRunCompleted, "guideway runs show "+r.ID
		n.Text = fmt.Sprintf("The workflow %s is completed.", r.Name)
	case r.Status == engine.StatusAborted:
		n.Type, n.Command = TypeRunAborted, "guideway runs show "+r.ID
		n.Text = fmt.Sprintf("The workflow %s was aborted.", r.Name)
	default:
		return n, false
	}
	return n, true
}

// DescribeMachineRun describes the run of a machine. The title of its record is its status.
func DescribeMachineRun(r *run.Record) (Notice, bool) {
	n := Notice{Step: r.Step, Page: "/machine-runs/" + r.ID, Command: "guideway machine status " + r.ID}
	switch r.Title {
	case "waiting":
		n.Type, n.Text = TypeMachineWaiting, fmt.Sprintf("The machine %s waits for an input in the state %s.", r.Workflow, r.Step)
	case "paused":
		n.Type, n.Text = TypeMachinePaused, fmt.Sprintf("The machine %s is paused in the state %s.", r.Workflow, r.Step)
	case "completed":
		n.Type, n.Text = TypeMachineCompleted, fmt.Sprintf("The machine %s is completed.", r.Workflow)
	case "cancelled":
		n.Type, n.Text = TypeMachineCancelled, fmt.Sprintf("The machine %s was cancelled.", r.Workflow)
	default:
		return n, false
	}
	return n, true
}
