package run_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/workflow"
)

// sealedState is a state document of shippingWorkflow that claims that a person has
// answered its human approval.
const sealedState = `{"workflowId":"shipping","workflowVersion":"1.0.0","stateVersion":1,"startedAt":"2026-11-20T00:00:00Z","updatedAt":"2026-11-20T00:00:00Z",
"currentPhase":3,"completedPhases":[1,2],"skippedPhases":[],"completedSteps":{"1":[1,2]},"decisionOutcomes":{},"activeLoops":[],"history":[],"status":"in_progress",
"checkpointResponses":{"1-1":{"optionId":"good","respondedAt":"2026-11-20T00:00:00Z"},"2-1":{"optionId":"sealed","respondedAt":"2026-11-20T00:00:00Z"}},
"variables":{"approved":true,"tests":12}}`

// editBundle returns a bundle after a change of its document.
func editBundle(t testing.TB, bundle []byte, change func(bundle map[string]any)) []byte {
	t.Helper()
	var document map[string]any
	if err := json.Unmarshal(bundle, &document); err != nil {
		t.Fatal(err)
	}
	change(document)
	out, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// factsOf returns the data of the events of a bundle.
func factsOf(bundle map[string]any) []map[string]any {
	var facts []map[string]any
	for _, e := range bundle["events"].([]any) {
		if data, ok := e.(map[string]any)["data"].(map[string]any); ok {
			facts = append(facts, data)
		}
	}
	return facts
}

// exportRun returns the bundle of a run.
func exportRun(t testing.TB, s *run.Service, id string) []byte {
	t.Helper()
	bundle, err := s.Export(t.Context(), agentCaller(), run.Ref{RunID: id})
	if err != nil {
		t.Fatal(err)
	}
	return bundle
}

// TestForgedStateInABundleIsRefused checks that a bundle that starts with an imported state
// is treated like the state document: only a person can import it if the workflow needs
// human approval.
func TestForgedStateInABundleIsRefused(t *testing.T) {
	t.Parallel()
	b := newTestBench(t)
	b.shelf["shipping"] = shippingWorkflow
	d, found := workflow.Parse("shipping.json", []byte(shippingWorkflow))
	if d == nil {
		t.Fatalf("%+v", found)
	}
	fact, err := engine.CompilePhases(d.Phases).Import([]byte(sealedState))
	if err != nil {
		t.Fatal(err)
	}
	bundle := editBundle(t, exportRun(t, b.Service, startRun(t, b.Service, "shipping", nil).RunID), func(bundle map[string]any) {
		bundle["events"] = []any{map[string]any{"seq": 2, "kind": fact.Kind, "by": map[string]any{"via": "terminal"}, "data": fact}}
	})
	for name, doImport := range map[string]func(run.Caller) (*run.Answer, error){
		"document": func(c run.Caller) (*run.Answer, error) {
			return b.ImportState(t.Context(), c, []byte(sealedState), run.Project{})
		},
		"bundle": func(c run.Caller) (*run.Answer, error) { return b.Import(t.Context(), c, bundle) },
	} {
		_, err := doImport(agentCaller())
		if r := requireRefusal(t, err, engine.RulePerson); r.Next == nil {
			t.Errorf("%s: the refusal suggests no call", name)
		}
		if a, err := doImport(personCaller(run.ViaTerminal)); err != nil || a.Position.ID != "send" {
			t.Errorf("%s: the import by a person returned %+v, %v", name, a, err)
		}
	}
}

// TestImportsObeyPersonGates checks imports by a service whose gates all require human
// approval. The gates of the imported run require it too, and an agent's import does not
// keep answers that were given without it. A person's import keeps them.
func TestImportsObeyPersonGates(t *testing.T) {
	t.Parallel()
	lenient := newTestBench(t)
	lenient.shelf["shipping"] = shippingWorkflow
	a := startRun(t, lenient.Service, "guarded", nil)
	a = mustContinue(t, lenient.Service, run.ContinueRequest{Handle: a.Handle, Output: "PLAN"})
	bundles := map[string][]byte{"before the gate": exportRun(t, lenient.Service, a.RunID)}
	a = mustContinue(t, lenient.Service, run.ContinueRequest{Handle: a.Handle, Output: "approve it"})
	bundles["at the gate"] = exportRun(t, lenient.Service, a.RunID)
	mustContinue(t, lenient.Service, run.ContinueRequest{Handle: a.Handle, Answer: confirmAnswer()})
	bundles["after the gate"] = exportRun(t, lenient.Service, a.RunID)

	a = startRun(t, lenient.Service, "shipping", nil)
	a = mustContinue(t, lenient.Service, run.ContinueRequest{Handle: a.Handle, Output: "written"})
	a = mustContinue(t, lenient.Service, run.ContinueRequest{Handle: a.Handle, Output: "polished"})
	mustContinue(t, lenient.Service, run.ContinueRequest{Handle: a.Handle, Answer: &engine.Answer{OptionID: "good"}})
	bundles["after a checkpoint"] = exportRun(t, lenient.Service, a.RunID)

	strict := newTestBench(t, func(o *run.Options) { o.PersonGates = true })
	a = startRun(t, strict.Service, "guarded", nil)
	bundles["without the mark of its own"] = editBundle(t, exportRun(t, strict.Service, a.RunID), func(bundle map[string]any) {
		for _, data := range factsOf(bundle) {
			delete(data, "person")
		}
	})
	for name, bundle := range bundles {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			strict := newTestBench(t, func(o *run.Options) { o.PersonGates = true })
			a, err := strict.Import(t.Context(), agentCaller(), bundle)
			if err != nil {
				t.Fatal(err)
			}
			for _, output := range []string{"PLAN", "approve it"} {
				if a.Position.Kind == engine.PositionStep {
					a = mustContinue(t, strict.Service, run.ContinueRequest{Handle: a.Handle, Output: output})
				}
			}
			if a.Position.Kind != engine.PositionGate || !a.Position.Person {
				t.Fatalf("the imported run is at %+v, want a gate with human approval", a.Position)
			}
			_, err = strict.Continue(t.Context(), agentCaller(), run.ContinueRequest{Handle: a.Handle, Answer: &engine.Answer{OptionID: a.Position.Options[0].ID}})
			checkRule(t, err, engine.RulePerson)
			again, err := strict.Import(t.Context(), agentCaller(), exportRun(t, strict.Service, a.RunID))
			if err != nil {
				t.Fatalf("the bundle of the imported run: %v", err)
			}
			if d := cmp.Diff(a.Position, again.Position); d != "" {
				t.Errorf("the run imported twice (-want +got):\n%s", d)
			}
		})
	}
	a, err := strict.Import(t.Context(), personCaller(run.ViaTerminal), bundles["after a checkpoint"])
	if err != nil || a.Position.ID != "enough" {
		t.Fatalf("the import by a person returned %+v, %v", a, err)
	}
}

// TestAgentCannotImportAnAbortedRun checks that an agent cannot import a bundle of a run
// that a person aborted, even if the bundle is older than the abort or lacks its last
// events. A person and another user can import it. After its own abort, an agent can import
// the run.
func TestAgentCannotImportAnAbortedRun(t *testing.T) {
	t.Parallel()
	b := newTestBench(t)
	a := startRun(t, b.Service, "guarded", nil)
	mustContinue(t, b.Service, run.ContinueRequest{Handle: a.Handle, Output: "PLAN"})
	before := exportRun(t, b.Service, a.RunID)
	imports := func(c run.Caller, bundle []byte) error {
		_, err := b.Import(t.Context(), c, bundle)
		return err
	}
	abort := func(c run.Caller) {
		t.Helper()
		if _, err := b.Abort(t.Context(), c, run.AbortRequest{Ref: run.Ref{RunID: a.RunID}}); err != nil {
			t.Fatal(err)
		}
	}
	abort(agentCaller())
	if err := imports(agentCaller(), before); err != nil {
		t.Errorf("after the agent's own abort: %v", err)
	}
	abort(personCaller(run.ViaBrowser))
	after := exportRun(t, b.Service, a.RunID)
	shortened := editBundle(t, after, func(bundle map[string]any) {
		events := bundle["events"].([]any)
		bundle["events"] = events[:len(events)-2]
	})
	for name, bundle := range map[string][]byte{"before the abort": before, "after it": after, "shortened": shortened} {
		if r := requireRefusal(t, imports(agentCaller(), bundle), run.RuleAbortedByPerson); r.Next == nil || r.RunID != a.RunID {
			t.Errorf("%s: the refusal is %+v", name, r)
		}
		if err := imports(personCaller(run.ViaTerminal), bundle); err != nil {
			t.Errorf("%s, a person: %v", name, err)
		}
		bob := agentCaller()
		bob.User = "bob"
		if err := imports(bob, bundle); err != nil {
			t.Errorf("%s, another user, to whom the run is unknown: %v", name, err)
		}
	}
}
