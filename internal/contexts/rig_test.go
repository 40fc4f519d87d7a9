package contexts_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts"
	"github.com/guideway-dev/guideway/internal/contexts/blob"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/guideway-dev/guideway/internal/contexts/compress"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/store/sqlite"
	"github.com/guideway-dev/guideway/internal/workflow"
)

// stepsFlow has a gate, a loop over a list, and steps after it.
const stepsFlow = `{"id":"move","name":"Move","description":"d","version":"1.0.0",
	"contextRules":[{"keys":["scratch*"],"layer":"ephemeral","why":"made anew"},{"keys":["contract"],"layer":"critical"}],
	"steps":[
	{"id":"plan","title":"Plan","prompt":"Plan the move of {{service}}.","requireConfirmation":true},
	{"id":"each","type":"loop","title":"Each","loop":{"type":"forEach","items":"files","itemVar":"file","maxIterations":9},"body":[
		{"id":"edit","title":"Edit","prompt":"Edit {{file}}."},
		{"id":"check","title":"Check","prompt":"Check {{file}}.","runCondition":{"var":"strict","equals":true}}]},
	{"id":"report","title":"Report","prompt":"Report."}]}`

// phasesFlow has phases, a loop, a gate, and a variable that the answer to the gate sets.
const phasesFlow = `{"id":"release","version":"1.0.0","title":"Release","initialPhase":"prepare",
	"contextRules":[{"keys":["buildLog"],"layer":"ephemeral"}],
	"variables":[{"name":"parts","type":"array"},{"name":"approved","type":"boolean","defaultValue":false}],
	"phases":[
	{"id":"prepare","name":"Prepare","steps":[{"id":"list","name":"List the parts"}],"transitions":[{"to":"build","isDefault":true}]},
	{"id":"build","name":"Build","loops":[{"id":"rounds","name":"Each part","type":"forEach","over":"parts","variable":"part","steps":[
		{"id":"compile","name":"Compile it"},{"id":"try","name":"Try it"}]}],
	 "checkpoints":[{"id":"ok","name":"All well?","message":"Is all of it well?","required":true,"options":[
		{"id":"yes","label":"Yes","effect":{"setVariable":{"approved":true}}},{"id":"no","label":"No"}]}],
	 "transitions":[{"to":"ship","isDefault":true}]},
	{"id":"ship","name":"Ship","steps":[{"id":"send","name":"Send it"}]}]}`

// definitionMap returns definitions by id.
type definitionMap map[string]string

func (s definitionMap) Startable(_ context.Context, id string) (*workflow.Definition, error) {
	text, ok := s[id]
	if !ok {
		return nil, guideway.Errorf(guideway.CodeNotFound, "no %s", id)
	}
	d, found := workflow.Check("", []byte(text))
	if d == nil {
		return nil, guideway.Errorf(guideway.CodeInvalidDefinition, "%s", found[0].Message)
	}
	return d, nil
}

func testFlows() definitionMap { return definitionMap{"move": stepsFlow, "release": phasesFlow} }

// rig has the services of one process on a directory.
type rig struct {
	*contexts.Service
	saver       *contexts.AutoSaver
	runs        *run.Service
	checkpoints *checkpoint.Service
	close       func()
}

// parts are the options of a rig that tests change.
type parts struct {
	memory     contexts.Options
	saver      contexts.AutoSaverOptions
	checkpoint checkpoint.Options
	run        run.Options
}

// openRig opens the services on a directory.
func openRig(ctx context.Context, dir string, change ...func(*parts)) (*rig, error) {
	store, err := sqlite.Open(ctx, sqlite.Options{Path: filepath.Join(dir, "guideway.db")})
	if err != nil {
		return nil, err
	}
	blobs, err := blob.OpenFiles(blob.FilesOptions{Dir: filepath.Join(dir, "contexts")})
	if err != nil {
		return nil, err
	}
	p := &parts{
		checkpoint: checkpoint.Options{Index: store, Blobs: blobs, Store: checkpoint.Store{Mode: checkpoint.ModeSQLite}},
		run:        run.Options{Journal: store, Definitions: testFlows(), Key: bytes.Repeat([]byte{7}, run.KeySize)},
		memory:     contexts.Options{Definitions: testFlows(), Counter: compress.Estimator{}},
	}
	for _, f := range change {
		f(p)
	}
	r := &rig{}
	if r.checkpoints, err = checkpoint.New(p.checkpoint); err != nil {
		return nil, err
	}
	if p.saver.Checkpoints == nil {
		p.saver.Checkpoints = r.checkpoints
	}
	if r.saver, err = contexts.NewAutoSaver(p.saver); err != nil {
		return nil, err
	}
	p.run.Observer = r.saver
	if r.runs, err = run.New(p.run); err != nil {
		return nil, err
	}
	p.memory.Checkpoints, p.memory.Runs, p.memory.AutoSaver = r.checkpoints, r.runs, r.saver
	if r.Service, err = contexts.New(p.memory); err != nil {
		return nil, err
	}
	r.close = func() {
		_ = r.saver.Close()
		_ = r.checkpoints.Close()
		_ = store.Close()
	}
	return r, nil
}

func setupRig(t testing.TB, change ...func(*parts)) *rig {
	t.Helper()
	return reopenRig(t, t.TempDir(), change...)
}

func reopenRig(t testing.TB, dir string, change ...func(*parts)) *rig {
	t.Helper()
	r, err := openRig(t.Context(), dir, change...)
	mustSucceed(t, err)
	t.Cleanup(r.close)
	return r
}

func mustSucceed(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%v (%s)", err, guideway.ErrorCode(err))
	}
}

func testCaller() run.Caller {
	return run.Caller{Principal: guideway.Principal{User: "ada", Client: "suite"}}
}

// handIn submits an output.
func handIn(ctx context.Context, r *rig, a *run.Answer, output string) (*run.Answer, error) {
	return r.runs.Continue(ctx, testCaller(), run.ContinueRequest{Handle: a.Handle, Output: output})
}

func answerGate(ctx context.Context, r *rig, a *run.Answer, option string) (*run.Answer, error) {
	return r.runs.Continue(ctx, testCaller(), run.ContinueRequest{Handle: a.Handle, Answer: &engine.Answer{OptionID: option}})
}

// runToLoop runs a workflow into the middle of the second iteration of its loop.
func runToLoop(ctx context.Context, r *rig, id string) (*run.Answer, error) {
	vars := map[string]any{"service": "login", "files": []any{"a.go", "b.go", "c.go"}, "strict": true, "note": "<kept> & 1.50"}
	if id == "release" {
		vars = map[string]any{"parts": []any{"api", "ui", "docs"}, "count": json.Number("12345678901234567890")}
	}
	a, err := r.runs.Start(ctx, testCaller(), run.StartRequest{WorkflowID: id, Goal: "the " + id, Context: vars})
	for i := 0; err == nil && i < 20; i++ {
		pos := a.Position
		switch {
		case pos.Loop != nil && pos.Loop.Round == 2 && (pos.ID == "check" || pos.ID == "try"):
			return a, nil
		case pos.Kind == engine.PositionGate:
			a, err = answerGate(ctx, r, a, pos.Options[0].ID)
		default:
			a, err = handIn(ctx, r, a, "Did "+pos.ID+fmt.Sprintf(" as number %d. It took a while.", i))
		}
	}
	if err == nil {
		err = fmt.Errorf("the run did not reach the middle of its loop: %+v", a.Position)
	}
	return a, err
}

// finishRun completes a run and returns the ids of its positions.
func finishRun(ctx context.Context, r *rig, a *run.Answer) (ids []string, err error) {
	for err == nil && a.Status != engine.StatusCompleted {
		ids = append(ids, a.Position.ID)
		if a.Position.Kind == engine.PositionGate {
			a, err = answerGate(ctx, r, a, a.Position.Options[0].ID)
		} else {
			a, err = handIn(ctx, r, a, "Did "+a.Position.ID)
		}
	}
	return ids, err
}

// longText returns a text of n different sentences.
func longText(about string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "The %s of part %d took %d milliseconds and left file-%d.txt behind. ", about, i, i*37%1000, i)
	}
	return b.String()
}

func bytesOf(line []byte) *bytes.Reader { return bytes.NewReader(line) }

// asJSON encodes a value like a stored context.
func asJSON(t testing.TB, v any) string {
	t.Helper()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	mustSucceed(t, enc.Encode(v))
	return strings.TrimSuffix(b.String(), "\n")
}
