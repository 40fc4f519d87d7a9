// Package notice tells receivers, which are webhooks and commands, that something waits for
// a person (DESIGN section 16).
//
// Nothing is written while an agent's call is answered: notices are derived from the feed of
// the journal. Each receiver has an outbox, a file with its position in the feed and the
// notices that it has not accepted yet. The position moves after the notices are in the
// file, and a notice leaves the file after its receiver accepted it, so each notice is
// delivered at least once, with the same id each time. A process holds the lock of the file
// while it delivers, so that only one process delivers. Of the machines that share a
// database, each has such files, and one claims the delivery of a notice in the database.
package notice

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/gofrs/flock"
	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/blob/seal"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/platform/atomicfile"
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

// maxPending is the number of notices in an outbox. The oldest are dropped first.
const maxPending = 1000

// maxOutboxBytes is the maximum size of the file of an outbox.
const maxOutboxBytes = 16 << 20

// Outbox is the state of a receiver.
type Outbox struct {
	// Positions are the positions in the feeds by the names of the sources.
	Positions map[string]int64 `json:"positions"`
	// Pending are the notices that the receiver has not accepted, oldest first.
	Pending []Notice `json:"pending,omitempty"`
	// Attempts counts the failed deliveries of the first pending notice.
	Attempts int       `json:"attempts,omitempty"`
	RetryAt  time.Time `json:"retryAt,omitzero"`
	// LastError is the error of the last delivery, or "".
	LastError string    `json:"lastError,omitempty"`
	Delivered int64     `json:"delivered"`
	LastAt    time.Time `json:"lastAt,omitzero"`
	// Dropped counts notices that were never accepted.
	Dropped int64 `json:"dropped,omitempty"`
}

// ReadOutbox returns the state of a receiver. It is empty if nothing was delivered yet. Texts
// decrypts the file, and may be nil.
func ReadOutbox(dir, receiver string, texts *seal.Texts) (*Outbox, error) {
	box := &Outbox{Positions: map[string]int64{}}
	text, err := atomicfile.File{Path: outboxPath(dir, receiver), What: "outbox of notices", MaxBytes: maxOutboxBytes}.Read()
	if errors.Is(err, fs.ErrNotExist) {
		return box, nil
	}
	if err != nil {
		return nil, err
	}
	plain, err := texts.Open(context.Background(), []byte(text), outboxPlace(receiver))
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(plain, box); err != nil || box.Positions == nil {
		return nil, guideway.Errorf(guideway.CodeInvalid, "%s is not a valid outbox of notices", outboxPath(dir, receiver)).
			WithFix("remove the file; the receiver then gets new notices of everything that waits")
	}
	return box, nil
}

// takeOutbox reads an outbox for delivery. A file that cannot be used is renamed, so that
// later notices still arrive.
func takeOutbox(o *Options, receiver string) *Outbox {
	box, err := ReadOutbox(o.Dir, receiver, o.Texts)
	if err == nil {
		return box
	}
	path := outboxPath(o.Dir, receiver)
	o.Log.Error("cannot read an outbox of notices; the file is renamed and a new outbox is used, so pending notices are lost and others are sent again", "receiver", receiver, "error", err, "old", path+".invalid")
	_ = os.Rename(path, path+".invalid")
	return &Outbox{Positions: map[string]int64{}}
}

// save stores the outbox durably, encrypted if texts is on.
func (b *Outbox) save(o *Options, receiver string) error {
	text, err := json.Marshal(b)
	if err == nil {
		text, err = o.Texts.Seal(context.Background(), text, outboxPlace(receiver))
	}
	if err != nil {
		return err
	}
	return atomicfile.Replace(outboxPath(o.Dir, receiver), string(text))
}

// add appends notices.
func (b *Outbox) add(list []Notice) {
	b.Pending = append(b.Pending, list...)
	if over := len(b.Pending) - maxPending; over > 0 {
		b.dropOldest(over)
	}
}

func (b *Outbox) dropOldest(count int) {
	b.Pending = b.Pending[count:]
	b.Dropped += int64(count)
	b.Attempts, b.RetryAt = 0, time.Time{}
}

func outboxPlace(receiver string) string { return "outbox of notices " + receiver }

func outboxPath(dir, receiver string) string { return filepath.Join(dir, receiver+".json") }

// tryLock takes the lock of a receiver's outbox. It returns nil if another process has it.
// The system releases the lock of a process that ends.
func tryLock(dir, receiver string) (*flock.Flock, error) {
	path := outboxPath(dir, receiver) + ".lock"
	if err := atomicfile.MakeDir(dir); err != nil {
		return nil, err
	}
	if err := atomicfile.EnsureFile(path); err != nil {
		return nil, err
	}
	lock := flock.New(path)
	if ok, err := lock.TryLock(); !ok {
		_ = lock.Close()
		return nil, err
	}
	return lock, nil
}

// contains reports whether a notice is pending.
func (b *Outbox) contains(id string) bool {
	return slices.ContainsFunc(b.Pending, func(n Notice) bool { return n.ID == id })
}
