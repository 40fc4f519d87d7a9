package enginetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/workflow/doc"
	"github.com/guideway-dev/guideway/internal/workflow/phases"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// stateSchema compiles the published schema of state documents.
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

// documentChecker tests the state documents of a run.
type documentChecker struct {
	*walk
	schema *jsonschema.Schema
	// imported are the runs that were imported during the walk.
	imported []*importedRun
}

// withTimes adds times to the run's events.
func withTimes(events []engine.Event) []engine.TimedEvent {
	list := make([]engine.TimedEvent, len(events))
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for i, e := range events {
		list[i] = engine.TimedEvent{At: at.Add(time.Duration(i) * time.Second), Event: e}
	}
	return list
}

// checkDocument exports the document of the run, and imports it.
func (d *documentChecker) checkDocument(p place) {
	d.Helper()
	list := withTimes(d.engine.events)
	text := asJSON(d.engine.program.Document(list))
	if again := asJSON(d.engine.program.Document(list)); again != text {
		d.failAt(p, command{}, "the same events have two documents: %s", cmp.Diff(text, again))
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader([]byte(text)))
	if err == nil {
		err = d.schema.Validate(value)
	}
	if err != nil {
		d.failAt(p, command{}, "the document is not valid: %v\n%s", err, text)
	}
	root, found := doc.Parse("state.json", []byte(text), doc.Limits{})
	if root == nil {
		d.failAt(p, command{}, "the document cannot be parsed: %+v", found)
	}
	if state, found := phases.ParseState("state.json", root); state == nil {
		d.failAt(p, command{}, "the document is not accepted: %+v\n%s", found, text)
	}
	event, err := d.engine.program.Import([]byte(text))
	if p.kind == "end" {
		if err == nil {
			d.failAt(p, command{}, "an ended run was imported: %s", text)
		}
		return
	}
	if err != nil {
		d.failAt(p, command{}, "the document was not imported: %v\n%s", err, text)
	}
	d.tally.documents++
	d.compareImport(p, text, event)
}

// compareImport checks that the imported run has the same position as the original.
func (d *documentChecker) compareImport(p place, text string, event engine.Event) {
	d.Helper()
	var read engine.Event
	if err := json.Unmarshal([]byte(asJSON(event)), &read); err != nil {
		d.failAt(p, command{}, "the import event does not decode: %v", err)
	}
	program := d.engine.program
	run, err := program.FoldFrom(engine.State{}, []engine.Event{read})
	if err != nil {
		d.failAt(p, command{}, "the import event cannot be folded: %v\n%s", err, text)
	}
	want, got := program.PositionOf(d.engine.run), program.PositionOf(run)
	if !samePosition(want, got) {
		if !mayRepeat(p, want, got, run) && !strings.HasPrefix(p.part, "a cycle") {
			d.failAt(p, command{}, "the imported run is at %s, want %s\nstate %s", asJSON(got), asJSON(want), text)
		}
		d.tally.elsewhere[fmt.Sprintf("%s %s: the imported run is at a %s", p.kind, p.part, got.Kind)]++
		return
	}
	if oneIn(d.randomSource, 4) {
		d.imported = append(d.imported, &importedRun{born: p, flowEngine: &flowEngine{program: program, run: run}, text: text})
	}
}

// mayRepeat reports whether an imported run may be at an earlier position than its
// original. The history contains neither actions nor transitions nor skipped steps.
// Therefore an import repeats the questions at the entry and the exit of a phase, restarts
// a phase without other traces, decides a transition to an exit or a skipped phase again,
// and repeats a skipped last step of a round.
func mayRepeat(p place, want, got engine.Position, run engine.State) bool {
	switch {
	case p.part == "exit", p.part == "skipped":
		return true
	case want.Phase == nil, got.Phase == nil, got.Phase.ID != want.Phase.ID:
		return false
	case run.Phases.Part == engine.PartEntry:
		return true
	case p.part == "loop" && p.kind == "context":
		return got.Loop != nil && got.Loop.ID == want.ID
	default:
		return false
	}
}

// samePosition compares positions without the rules, which depend on the number of
// completed steps, and without fields that a document does not contain.
func samePosition(a, b engine.Position) bool {
	a.MetaGuidance, b.MetaGuidance = nil, nil
	a.Person, b.Person = false, false
	a.Message, b.Message = leftOut.ReplaceAllString(a.Message, ""), leftOut.ReplaceAllString(b.Message, "")
	return asJSON(a) == asJSON(b)
}

// leftOut matches the report of items that a loop left out, which a document does not
// contain.
var leftOut = regexp.MustCompile(`\n?Loop '[^']*' ended after round \d+ of \d+ because of maxIterations\. Rounds left out: \d+\. ?`)

// importedRun is an imported copy of a run that receives the same commands.
type importedRun struct {
	*flowEngine
	born place
	text string
}

// sendToImports sends a command of the original run to its imported copies. After an exit,
// an imported run decides the transition again, because a document does not contain it.
func (d *documentChecker) sendToImports(c command) {
	d.Helper()
	c.person = true
	var left []*importedRun
	for _, t := range d.imported {
		got, denied := t.sendCommand(c)
		want := d.engine.currentView()
		switch {
		case denied == nil && samePosition(want.position, got.position):
			left = append(left, t)
			d.tally.followed++
		case t.born.part == "exit" || t.born.part == "skipped" || strings.HasPrefix(t.born.part, "a cycle"):
			d.tally.elsewhere["after more commands, the imported run is at a "+t.born.kind+" "+t.born.part]++
		default:
			d.Fatalf("a run that was imported at %s diverges: the position is %s %s, want %s\nstate %s\nafter %s\nof %s",
				t.born, got.whole, asJSON(denied), want.whole, t.text, d.accepted, d.def.toDocument())
		}
	}
	d.imported = left
}

// The document of a run is valid at every position. Its import has the same position, and
// the same commands lead the imported run to the same positions.
func TestImportedDocumentsContinueAlike(t *testing.T) {
	t.Parallel()
	schema := stateSchema(t)
	forEachWorkflow(t, 40, func(w *walk) {
		d := &documentChecker{walk: w, schema: schema}
		w.legalOnly, w.onPlace, w.onAccepted = true, d.checkDocument, d.sendToImports
		w.runWalk()
	})
}
