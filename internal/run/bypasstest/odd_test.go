package bypasstest

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/run"
)

// newSmallService returns a service with a definition of two steps. The first one shows a
// variable.
func newSmallService(t *testing.T) *service {
	t.Helper()
	def := &definition{id: "random", items: []*step{{id: "s-1-id", serial: 1, template: " with {{odd}}"}, {id: "s-2-id", serial: 2}}}
	return newService(t.Context(), t, seeded{rand.New(rand.NewPCG(1, 1))}, parseDefinition(t, def.marshalDefinition()), false)
}

func nestedValue(levels int) any {
	v := any("deep")
	for range levels {
		v = []any{v}
	}
	return v
}

// TestOddContextsAreRefusedOrKept checks that a context of any form is either refused or
// stored so that another process reads the same.
func TestOddContextsAreRefusedOrKept(t *testing.T) {
	t.Parallel()
	wide := map[string]any{}
	for _, name := range []string{"", " ", "a.b", "a[0]", "__proto__", "constructor", "{{odd}}", "\x00", "\U0001F600", "_", "_private"} {
		wide[name] = name
	}
	tests := map[string]struct {
		value any
		// rule is the rule of the required refusal. With "no", any refusal is sufficient.
		// With "", the context may be accepted or refused.
		rule string
	}{
		"null":                                {value: nil},
		"an empty object":                     {value: map[string]any{}},
		"odd names":                           {value: wide},
		"a placeholder":                       {value: "{{odd}} {{size}}"},
		"a number above the range of a float": {value: json.Number("1e400")},
		"a number that a float rounds":        {value: json.Number("12345678901234567890")},
		"a negative zero":                     {value: json.Number("-0")},
		"a long number":                       {value: json.Number(strings.Repeat("7", 400_000)), rule: ruleTooLarge},
		"50 levels":                           {value: nestedValue(50)},
		"deeper than decoders allow":          {value: nestedValue(10_500), rule: "no"},
		"as deep as decoders allow":           {value: nestedValue(9_999), rule: "no"},
		"a string that is not UTF-8":          {value: "\xff\xfe"},
		"a string with every control code":    {value: "\x00\x01\x1f\x7f\u2028\u0085"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSmallService(t)
			a, err := s.Start(t.Context(), s.agentCaller(), run.StartRequest{WorkflowID: "random", Context: map[string]any{"odd": tt.value}})
			if err != nil {
				r, _ := run.AsRefusal(err)
				switch code := guideway.ErrorCode(err); {
				case code != guideway.CodeInvalid && r == nil:
					t.Errorf("got %v, want a refusal or %s", err, guideway.CodeInvalid)
				case tt.rule != "" && tt.rule != "no" && (r == nil || r.Rule != tt.rule):
					t.Errorf("got %v, want a refusal by %s", err, tt.rule)
				}
				return
			}
			if tt.rule != "" {
				t.Fatalf("accepted: %.300s", asJSON(a))
			}
			s.answer = a
			s.restartProcess()
			if again := s.look(); again.whole != asJSON(a) {
				t.Errorf("a different process returns %.300s, want %.300s", again.whole, asJSON(a))
			}
			if _, refused := s.send(command{kind: "continue", output: "done"}); refused != nil {
				t.Errorf("the run does not continue: %s", refused.message)
			}
			if _, err := s.Export(t.Context(), s.agentCaller(), run.Ref{RunID: s.answer.RunID}); err != nil {
				t.Errorf("export: %v", err)
			}
		})
	}
}

// TestTextsAreBounded checks that texts over the limits are refused and do not change the
// run.
func TestTextsAreBounded(t *testing.T) {
	t.Parallel()
	s := newSmallService(t)
	s.start(nil)
	for name, c := range map[string]command{
		"output": {kind: "continue", output: strings.Repeat("x", 1<<20+1)},
		"notes":  {kind: "continue", output: "done", notes: strings.Repeat("x", 64<<10+1)},
		"note":   {kind: "continue", answer: &reply{option: "confirm", note: strings.Repeat("x", 64<<10+1)}},
	} {
		before := s.state()
		if _, refused := s.send(c); refused == nil || refused.rule != ruleInput && refused.rule != ruleNoGate {
			t.Errorf("%s: the result is %.300s, want a refusal by %s", name, asJSON(refused), ruleInput)
		}
		if after := s.state(); after != before {
			t.Errorf("%s has changed the run", name)
		}
	}
}

// TestTheRunKeepsNothingOfTheCallers checks that a caller that changes its variables after
// a call does not change the run.
func TestTheRunKeepsNothingOfTheCallers(t *testing.T) {
	t.Parallel()
	s := newSmallService(t)
	list := []any{"a", map[string]any{"b": "c"}}
	first, _ := s.start(map[string]any{"odd": list})
	list[0], list[1].(map[string]any)["b"] = "changed", "changed"
	if now := s.look(); now.whole != first.whole {
		t.Errorf("the run has changed from %s to %s", first.whole, now.whole)
	}
}

// TestAnAnswerIsForTheRoundThatWasSeen checks that an answer applies only to the shown
// gate: if it is repeated or late, it does not answer the same gate in a later round.
func TestAnAnswerIsForTheRoundThatWasSeen(t *testing.T) {
	t.Parallel()
	body := &step{id: "s-2-id", serial: 2, human: true}
	def := &definition{id: "random", items: []*step{{id: "s-1-id", serial: 1, loop: &loop{kind: "for", count: 2, most: 3, body: []*step{body}}}}}
	s := newService(t.Context(), t, seeded{rand.New(rand.NewPCG(1, 1))}, parseDefinition(t, def.marshalDefinition()), false)
	s.start(nil)
	done := command{kind: "continue", output: "done"}
	if _, refused := s.send(done); refused != nil {
		t.Fatal(refused.message)
	}
	shown := s.answer.Handle
	confirm := func() error {
		a, err := s.Answer(t.Context(), s.personCaller(), run.AnswerRequest{
			Ref: run.Ref{Handle: shown}, Step: "s-2-id", Answer: engine.Answer{OptionID: engine.OptionConfirm},
		})
		if err == nil && !a.Replayed {
			s.answer = a
		}
		return err
	}
	if err := confirm(); err != nil {
		t.Fatal(err)
	}
	if _, refused := s.send(done); refused != nil {
		t.Fatal(refused.message)
	}
	before := s.state()
	err := confirm()
	if after := s.state(); after != before {
		t.Errorf("the answer for the first round (%v) has changed the run from\n%s\nto\n%s", err, before, after)
	}
}
