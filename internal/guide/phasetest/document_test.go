package phasetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/guideway-dev/guideway/internal/definition/doc"
	"github.com/guideway-dev/guideway/internal/definition/phases"
	"github.com/guideway-dev/guideway/internal/guide"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// stateSchema is the published schema of state documents.
func stateSchema(t testing.TB) *jsonschema.Schema {
	t.Helper()
	text, err := jsonschema.UnmarshalJSON(bytes.NewReader(phases.Schema(phases.KindState)))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("state.json", text); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("state.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// documents are what is tried with a run's state documents.
type documents struct {
	*walk
	schema *jsonschema.Schema
	// twins are runs that were imported on the way.
	twins []*twin
}

// timed gives the run's events times.
func timed(events []guide.Event) []guide.TimedEvent {
	list := make([]guide.TimedEvent, len(events))
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for i, e := range events {
		list[i] = guide.TimedEvent{At: at.Add(time.Duration(i) * time.Second), Event: e}
	}
	return list
}

// try makes the document of the run, and imports it.
func (d *documents) try(p place) {
	d.Helper()
	list := timed(d.engine.events)
	text := asJSON(d.engine.program.Document(list))
	if again := asJSON(d.engine.program.Document(list)); again != text {
		d.fail(p, command{}, "the same events have two documents: %s", cmp.Diff(text, again))
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader([]byte(text)))
	if err == nil {
		err = d.schema.Validate(value)
	}
	if err != nil {
		d.fail(p, command{}, "the document is not valid: %v\n%s", err, text)
	}
	root, found := doc.Parse("state.json", []byte(text), doc.Limits{})
	if root == nil {
		d.fail(p, command{}, "the document does not read: %+v", found)
	}
	if state, found := phases.ParseState("state.json", root); state == nil {
		d.fail(p, command{}, "the document is not taken: %+v\n%s", found, text)
	}
	event, err := d.engine.program.Import([]byte(text))
	if p.kind == "end" {
		if err == nil {
			d.fail(p, command{}, "a run that is over was imported: %s", text)
		}
		return
	}
	if err != nil {
		d.fail(p, command{}, "the document was not imported: %v\n%s", err, text)
	}
	d.tally.documents++
	d.compare(p, text, event)
}

// compare says whether the imported run stands where the other does.
func (d *documents) compare(p place, text string, event guide.Event) {
	d.Helper()
	var read guide.Event
	if err := json.Unmarshal([]byte(asJSON(event)), &read); err != nil {
		d.fail(p, command{}, "the event of the import does not read: %v", err)
	}
	program := d.engine.program
	run, err := program.FoldFrom(guide.State{}, []guide.Event{read})
	if err != nil {
		d.fail(p, command{}, "the event of the import does not fit: %v\n%s", err, text)
	}
	want, got := program.PositionOf(d.engine.run), program.PositionOf(run)
	if !samePlace(want, got) {
		if !asksAgain(p, want, got, run) && !strings.HasPrefix(p.why, "a circle") {
			d.fail(p, command{}, "imported, the run stands at %s, not at %s\nstate %s", asJSON(got), asJSON(want), text)
		}
		d.tally.elsewhere[fmt.Sprintf("%s %s: imported at a %s", p.kind, p.why, got.Kind)]++
		return
	}
	if oneIn(d.dice, 4) {
		d.twins = append(d.twins, &twin{born: p, engine: &engine{program: program, run: run}, text: text})
	}
}

// asksAgain says whether an imported run may stand before the place that its
// document was taken at. History has neither actions nor transitions nor skipped
// steps, so that what a phase asks for at its entry and exit is asked for again,
// where nothing else has left a trace a phase begins anew, a way that was taken
// to an exit or a skipped phase is decided again, and the last step of a round
// that was skipped is asked for again.
func asksAgain(p place, want, got guide.Position, run guide.State) bool {
	switch {
	case p.why == "exit", p.why == "skipped":
		return true
	case want.Phase == nil, got.Phase == nil, got.Phase.ID != want.Phase.ID:
		return false
	case run.Phases.Part == guide.PartEntry:
		return true
	case p.why == "loop" && p.kind == "context":
		return got.Loop != nil && got.Loop.ID == want.ID
	default:
		return false
	}
}

// samePlace compares positions, but for the rules, which come with the first
// step that is done, and what is of the run and not of its document.
func samePlace(a, b guide.Position) bool {
	a.MetaGuidance, b.MetaGuidance = nil, nil
	a.Person, b.Person = false, false
	return asJSON(a) == asJSON(b)
}

// twin is a run that was imported, and goes the same way.
type twin struct {
	*engine
	born place
	text string
}

// follow sends a command to the twins too. Behind an exit a way that was decided
// before is decided again, as a document does not say which it was.
func (d *documents) follow(c command) {
	d.Helper()
	c.person = true
	var left []*twin
	for _, t := range d.twins {
		got, denied := t.send(c)
		want := d.engine.look()
		switch {
		case denied == nil && samePlace(want.position, got.position):
			left = append(left, t)
			d.tally.followed++
		case t.born.why == "exit" || t.born.why == "skipped" || strings.HasPrefix(t.born.why, "a circle"):
			d.tally.elsewhere["later, imported at a "+t.born.kind+" "+t.born.why]++
		default:
			d.Fatalf("a run that was imported at %s goes elsewhere: it stands at %s %s, not at %s\nstate %s\nafter %s\nof %s",
				t.born, got.whole, asJSON(denied), want.whole, t.text, d.accepted, d.def.document())
		}
	}
	d.twins = left
}

// The document of a run is valid at every place, and leads back to it: a run
// that is imported goes the same way under the same commands.
func TestDocumentsLeadBack(t *testing.T) {
	t.Parallel()
	schema := stateSchema(t)
	each(t, 40, func(w *walk) {
		d := &documents{walk: w, schema: schema}
		w.gentle, w.hook, w.after = true, d.try, d.follow
		w.run()
	})
}
