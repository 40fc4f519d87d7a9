package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	hookdef "github.com/guideway-dev/guideway/internal/hooks/definition"
	"github.com/guideway-dev/guideway/internal/hooks/definition/definitiontest"
	hookengine "github.com/guideway-dev/guideway/internal/hooks/engine"
)

// action is the behavior of a script in a property test.
type action string

const (
	passes    action = "passes"
	changes   action = "changes"
	answers   action = "answers"
	withdraws action = "withdraws"
	refuses   action = "refuses"
	throws    action = "throws"
	babbles   action = "babbles"
)

// scenario is a valid graph with an action for each hook and a value for each condition.
type scenario struct {
	graph *hookdef.Graph
	deeds map[string]action
	holds map[string]bool
	fails bool // fails reports whether the call fails
}

func drawPlay(t *rapid.T) *scenario {
	p := &scenario{graph: definitiontest.Legal(t), deeds: map[string]action{}, holds: map[string]bool{}, fails: rapid.IntRange(0, 4).Draw(t, "fails") == 0}
	p.graph.Variables = map[string]json.RawMessage{}
	for i := range p.graph.Nodes {
		n := &p.graph.Nodes[i]
		switch n.Kind {
		case hookdef.HookNode:
			p.deeds[n.ID] = rapid.SampledFrom([]action{passes, passes, passes, changes, answers, withdraws, refuses, throws, babbles}).Draw(t, "deed")
			if n.Hook.Answers && rapid.Bool().Draw(t, "does") {
				p.deeds[n.ID] = answers
			}
		case hookdef.ConditionNode:
			p.holds[n.ID] = rapid.Bool().Draw(t, "holds")
			p.graph.Variables[n.ID] = json.RawMessage(fmt.Sprint(p.holds[n.ID]))
		default:
		}
	}
	return p
}

// RunHook runs the action of a hook.
func (p *scenario) RunHook(_ context.Context, call hookengine.ScriptCall) (*hookengine.ScriptResult, error) {
	var c map[string]any
	if err := json.Unmarshal(call.Context, &c); err != nil {
		return nil, err
	}
	id, _ := valueAt(c, "metadata", "nodeId").(string)
	result := &hookengine.ScriptResult{}
	switch p.deeds[id] {
	case changes:
		c["request"] = map[string]any{"method": "tools/call", "params": map[string]any{"name": id}}
	case answers:
		c["response"] = map[string]any{"content": []any{map[string]any{"type": "text", "text": id}}}
	case withdraws:
		delete(c, "response")
	case refuses:
		result.Value = json.RawMessage(`{"continue": false, "error": {"message": "no"}}`)
	case throws:
		return nil, errors.New("boom")
	case babbles:
		result.Value = json.RawMessage(`17`)
	default:
	}
	var err error
	result.Context, err = json.Marshal(c)
	return result, err
}

// model is the result of a second, naive execution of a scenario: which blocking nodes run,
// how often the call is sent, with which name, and the outcome.
type model struct {
	way    []string
	sent   int
	name   string
	status hookengine.Status
}

func (p *scenario) predictOutcome() model {
	m := model{name: "first"}
	id, has, answered, altered := "n0", "", false, false
	for {
		n := p.graph.Node(id)
		m.way = append(m.way, id)
		branch := hookdef.NoBranch
		switch n.Kind {
		case hookdef.End:
			m.status = hookengine.StatusPassed
			switch {
			case has == "":
				m.status = hookengine.StatusError
			case answered:
				m.status = hookengine.StatusAnswered
			case altered:
				m.status = hookengine.StatusChanged
			}
			return m
		case hookdef.Call:
			if !answered {
				m.sent++
				has = "server"
				if p.fails {
					m.status = hookengine.StatusError
					return m
				}
			}
		case hookdef.ConditionNode:
			branch = hookdef.Branch(fmt.Sprint(p.holds[id]))
		case hookdef.HookNode:
			switch p.deeds[id] {
			case changes:
				altered, m.name = true, id
			case answers:
				altered, has, answered = true, id, answered || m.sent == 0
			case withdraws:
				if m.sent > 0 {
					m.status = hookengine.StatusError
					return m
				}
				altered, has, answered = altered || has != "", "", false
			case refuses:
				m.status = hookengine.StatusRefused
				return m
			case throws, babbles:
				m.status = hookengine.StatusError
				return m
			default:
			}
			if n.Hook.Answers && has == "" {
				m.status = hookengine.StatusError
				return m
			}
		default:
		}
		for _, e := range p.graph.Edges {
			if to := p.graph.Node(e.Target); e.Source == id && e.Branch == branch && !to.IsFireAndForget() {
				id = to.ID
				break
			}
		}
	}
}

// For all graphs and actions: the call is sent at most once, nodes run in the order of the
// path, a failure or refusal stops the request, fire-and-forget hooks change nothing, and
// the outcome equals that of the naive execution.
func TestProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := drawPlay(t)
		linked, found := hookdef.Link(p.graph, hookdef.Library{})
		if linked == nil {
			t.Fatal(found)
		}
		program, err := hookengine.Compile(linked)
		if err != nil {
			t.Fatal(err)
		}
		engine := hookengine.New(hookengine.Options{Scripts: p, Background: 1_000})
		defer engine.Close(context.Background())
		var mu sync.Mutex
		var calls []string
		out := engine.Run(context.Background(), program, hookengine.Request{Params: json.RawMessage(`{"name":"first"}`)},
			hookengine.CallerFunc(func(_ context.Context, c hookengine.Call) (json.RawMessage, error) {
				var params struct{ Name string }
				mu.Lock()
				defer mu.Unlock()
				if err := json.Unmarshal(c.Params, &params); err != nil {
					return nil, err
				}
				calls = append(calls, params.Name)
				if p.fails {
					return nil, errors.New("server unavailable")
				}
				return json.RawMessage(`{"content": [{"type": "text", "text": "server"}]}`), nil
			}))
		nodes, err := out.Settle(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		want := p.predictOutcome()
		var way []string
		for _, n := range nodes {
			if n.Pending {
				t.Fatalf("%s is pending after Settle", n.ID)
			}
			if !n.FireAndForget {
				way = append(way, n.ID)
			}
		}
		if len(calls) > 1 || len(calls) != want.sent || out.Sent != (want.sent > 0) || out.Status != want.status || !slices.Equal(way, want.way) {
			t.Fatalf("%+v\n%+v\ncalls %v, way %v, %s (%v)\nwanted %+v", p, p.graph.Edges, calls, way, out.Status, out.Err, want)
		}
		if len(calls) > 0 && !nameBefore(p, want, calls[0]) {
			t.Fatalf("the call was sent as %s, want %+v", calls[0], want)
		}
		if (out.Err == nil) != (len(out.Response) > 0) {
			t.Fatalf("want an error or a response, got the error %v and the response %s", out.Err, out.Response)
		}
	})
}

// nameBefore reports whether name is the tool name that the last hook before the call set,
// or the original name if no hook set one.
func nameBefore(p *scenario, m model, name string) bool {
	want := "first"
	for _, id := range m.way {
		n := p.graph.Node(id)
		if n.Kind == hookdef.Call {
			return name == want
		}
		if n.Kind == hookdef.HookNode && p.deeds[id] == changes {
			want = id
		}
	}
	return false
}
