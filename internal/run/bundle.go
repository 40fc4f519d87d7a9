package run

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/engine"
)

// The format of an exported run. The version increases with changes that an older reader
// would misinterpret.
const (
	bundleFormat  = "guideway-run"
	bundleVersion = 1
)

// MaxBundle bounds an imported bundle, in bytes.
const MaxBundle = 256 << 20

// runBundle is an exported run, with everything that another installation needs to continue
// it.
type runBundle struct {
	Format     string     `json:"format"`
	Version    int        `json:"version"`
	ExportedAt time.Time  `json:"exportedAt"`
	Run        Record     `json:"run"`
	Definition Definition `json:"definition"`
	Events     []Event    `json:"events"`
}

// Export returns a run as a self-contained JSON document, including its definition.
func (s *Service) Export(ctx context.Context, c Caller, ref Ref) ([]byte, error) {
	d, err := s.GetWithEvents(ctx, c, ref)
	if err != nil {
		return nil, err
	}
	return Bundle(d.Record, Definition{Hash: d.Hash, Text: d.Definition}, d.Events, s.currentTime())
}

// Bundle writes a run in the format of Export. It is for runs that were salvaged from a
// damaged journal and cannot be loaded by a service.
func Bundle(r Record, d Definition, events []Event, at time.Time) ([]byte, error) {
	out, err := json.MarshalIndent(runBundle{
		Format: bundleFormat, Version: bundleVersion, ExportedAt: at, Run: r, Definition: d, Events: events,
	}, "", "  ")
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeInternal, "encode the bundle: %w", err)
	}
	return append(out, '\n'), nil
}

// Import stores an exported run as a new run of the caller. Its events must be valid for
// its definition. Their origin is not verified, so they are recorded with ViaImport. Human
// approvals in a bundle are not accepted: the imported run waits at that gate again, unless
// c.Via proves a person. If the gates of new runs require human approval, so do those of
// the imported run. An agent cannot import a run that a person aborted in this journal. A
// bundle that starts with an imported state is subject to the check of ImportState.
func (s *Service) Import(ctx context.Context, c Caller, data []byte) (*Answer, error) {
	b, err := parseBundle(data)
	if err != nil {
		return nil, err
	}
	d, err := parsePinned(b.Definition)
	if err != nil {
		return nil, bundleError("%s", err.Error())
	}
	p := compileProgram(d)
	var entries []entry
	var facts []engine.Event
	now := s.currentTime()
	for _, e := range b.Events {
		fact, ok, err := parseFact(e)
		if err != nil {
			return nil, bundleError("event %d cannot be decoded: %s", e.Seq, err.Error())
		}
		if !ok {
			continue
		}
		e.By = By{User: Truncate(e.By.User, maxKey), Client: Truncate(e.By.Client, maxKey), Via: ViaImport}
		if e.At = e.At.UTC().Truncate(time.Microsecond); e.At.IsZero() || e.At.After(now) {
			e.At = now
		}
		entries = append(entries, entry{fact: fact, event: e})
		facts = append(facts, fact)
	}
	if len(facts) == 0 {
		return nil, bundleError("it contains no event of a workflow")
	}
	if _, err := engine.Recheck(p.Flow, facts); err != nil {
		return nil, bundleError("%s", err.Error())
	}
	if facts[0].Kind == engine.EventStateImported {
		if err := s.checkStateImport(c, p, d.ID); err != nil {
			return nil, err
		}
	}
	if s.personGates {
		requirePersons(entries)
	}
	if !c.Approves() {
		if err := s.refuseAbortedBundle(ctx, c, b.Run.ID); err != nil {
			return nil, err
		}
		entries = beforeHumanApproval(entries, func(*engine.OpenGate) bool { return false })
	}
	where := s.shares.AllowedProject(c, b.Run.Project)
	created := Created{
		Workflow: d.ID, Name: d.Name, Version: d.Version, Hash: d.Hash,
		Goal: Truncate(b.Run.Goal, maxGoal), Project: where.truncateNames(), Imported: Truncate(b.Run.ID, maxKey),
		Workspace: s.startWorkspace(ctx, p, where.Path),
	}
	return s.createRun(ctx, c, p, created, entries, "")
}

// refuseAbortedBundle refuses the import of a run that a person aborted in this journal. The
// id is a claim of the bundle.
func (s *Service) refuseAbortedBundle(ctx context.Context, c Caller, id string) error {
	if err := s.openJournal(ctx); err != nil {
		return err
	}
	rec, err := s.journal.Run(ctx, id)
	if guideway.ErrorCode(err) == guideway.CodeNotFound || err == nil && !s.mayUse(ctx, c, rec) {
		return nil
	}
	if err != nil {
		return err
	}
	return s.refuseAbortedByPerson(ctx, rec)
}

// requirePersons changes the entries of a run as if all of its gates required human
// approval.
func requirePersons(entries []entry) {
	var state engine.State
	for i := range entries {
		fact := &entries[i].fact
		next := engine.Apply(state, *fact)
		if i == 0 || next.Gate != nil && state.Gate == nil {
			fact.Person = true
			next = engine.Apply(state, *fact)
		}
		state = next
	}
}

// beforeHumanApproval returns the entries before the first answer at a human approval whose
// answers the caller does not inherit.
func beforeHumanApproval(entries []entry, inherits func(*engine.OpenGate) bool) []entry {
	var state engine.State
	for i, e := range entries {
		next := engine.Apply(state, e.fact)
		if g := state.Gate; g != nil && g.Person && (next.Gate == nil || len(next.Gate.Votes) > 0) && e.fact.Kind != engine.EventRunAborted && !inherits(g) {
			return entries[:i]
		}
		state = next
	}
	return entries
}

func parseBundle(data []byte) (*runBundle, error) {
	if len(data) > MaxBundle {
		return nil, bundleError("it has %d bytes; at most %d are allowed", len(data), MaxBundle).
			WithFix("fork the run at an earlier event, and export the fork")
	}
	var b runBundle
	if err := json.NewDecoder(bytes.NewReader(data)).Decode(&b); err != nil {
		return nil, bundleError("it is not valid JSON, or a member has the wrong type: %s", err.Error())
	}
	switch b.Format {
	case bundleFormat:
	case "":
		return nil, bundleError("the member \"format\" is missing; it must be %q", bundleFormat)
	default:
		return nil, bundleError("the member \"format\" is %q; it must be %q", Truncate(b.Format, maxKey), bundleFormat)
	}
	if b.Version > bundleVersion {
		return nil, bundleError("version %d is newer than %d, the newest that this program reads", b.Version, bundleVersion).
			WithFix("use a newer version of Guideway")
	}
	return &b, nil
}

func bundleError(format string, args ...any) *guideway.Error {
	return guideway.Errorf(guideway.CodeInvalid, "the bundle cannot be imported: "+format, args...).
		WithFix("create a bundle with: guideway runs export RUN")
}
