package run

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/engine"
)

// The form of an exported run. Version counts the changes that an older reader
// would get wrong.
const (
	bundleFormat  = "guideway-run"
	bundleVersion = 1
)

// MaxBundle bounds what is imported, in bytes.
const MaxBundle = 256 << 20

// bundle is an exported run: all that another installation needs to go on with
// it.
type bundle struct {
	Format     string     `json:"format"`
	Version    int        `json:"version"`
	ExportedAt time.Time  `json:"exportedAt"`
	Run        Record     `json:"run"`
	Definition Definition `json:"definition"`
	Events     []Event    `json:"events"`
}

// Export gives a run as a self-contained JSON document, its definition
// included.
func (s *Service) Export(ctx context.Context, c Caller, ref Ref) ([]byte, error) {
	d, err := s.Get(ctx, c, ref)
	if err != nil {
		return nil, err
	}
	return Bundle(d.Record, Definition{Hash: d.Hash, Text: d.Definition}, d.Events, s.clock())
}

// Bundle writes a run in the form that Export gives, for one that no service can
// load any more: it was read out of a damaged journal.
func Bundle(r Record, d Definition, events []Event, at time.Time) ([]byte, error) {
	out, err := json.MarshalIndent(bundle{
		Format: bundleFormat, Version: bundleVersion, ExportedAt: at, Run: r, Definition: d, Events: events,
	}, "", "  ")
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeInternal, "write the bundle: %w", err)
	}
	return append(out, '\n'), nil
}

// Import stores an exported run as a new run of the caller's. Its events must
// fit its definition; that they happened is what the bundle claims, and they
// count as ViaImport. That a person has answered a person's gate is not taken
// from a bundle: the imported run waits there again, unless c.Via proves a
// person.
func (s *Service) Import(ctx context.Context, c Caller, data []byte) (*Answer, error) {
	b, err := readBundle(data)
	if err != nil {
		return nil, err
	}
	d, err := parsePinned(b.Definition)
	if err != nil {
		return nil, badBundle("%s", err.Error())
	}
	p := compile(d)
	var entries []entry
	var facts []engine.Event
	now := s.clock()
	for _, e := range b.Events {
		fact, ok, err := factOf(e)
		if err != nil {
			return nil, badBundle("event %d does not read: %s", e.Seq, err.Error())
		}
		if !ok {
			continue
		}
		e.By = By{User: cut(e.By.User, maxKey), Client: cut(e.By.Client, maxKey), Via: ViaImport}
		if e.At = e.At.UTC().Truncate(time.Microsecond); e.At.IsZero() || e.At.After(now) {
			e.At = now
		}
		entries = append(entries, entry{fact: fact, event: e})
		facts = append(facts, fact)
	}
	if len(facts) == 0 {
		return nil, badBundle("it has no events")
	}
	if _, err := engine.Recheck(p.Flow, facts); err != nil {
		return nil, badBundle("%s", err.Error())
	}
	if !c.Via.Person() {
		entries = beforePersons(entries)
	}
	created := Created{
		Workflow: d.ID, Name: d.Name, Version: d.Version, Hash: d.Hash,
		Goal: cut(b.Run.Goal, maxGoal), Project: b.Run.Project.bounded(), Imported: cut(b.Run.ID, maxKey),
	}
	return s.begin(ctx, c, p, created, entries, "")
}

// beforePersons keeps what comes before the first answer at a person's gate.
func beforePersons(entries []entry) []entry {
	var state engine.State
	for i, e := range entries {
		next := engine.Apply(state, e.fact)
		if state.Gate != nil && state.Gate.Person && next.Gate == nil && e.fact.Kind != engine.EventRunAborted {
			return entries[:i]
		}
		state = next
	}
	return entries
}

func readBundle(data []byte) (*bundle, error) {
	if len(data) > MaxBundle {
		return nil, badBundle("it is too large: %d bytes", len(data))
	}
	var b bundle
	if err := json.NewDecoder(bytes.NewReader(data)).Decode(&b); err != nil {
		return nil, badBundle("it is not JSON: %s", err.Error())
	}
	if b.Format != bundleFormat {
		return nil, badBundle("its format is %q, not %q", cut(b.Format, maxKey), bundleFormat)
	}
	if b.Version > bundleVersion {
		return nil, badBundle("it is of version %d and this program reads up to %d", b.Version, bundleVersion).
			WithFix("use a newer guideway")
	}
	return &b, nil
}

func badBundle(format string, args ...any) *guideway.Error {
	return guideway.Errorf(guideway.CodeInvalid, "the bundle cannot be imported: "+format, args...).
		WithFix("guideway runs export RUN makes one")
}
