package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/gateway/upstream"
	"github.com/guideway-dev/guideway/internal/gateway/upstream/upstreamtest"
)

// changingHooks change the configuration after the lookup of a call.
type changingHooks struct{ change func() }

func (*changingHooks) Versions(string, string) map[string]string { return nil }

func (h *changingHooks) Applies(method, _, _ string) bool { return method == methodCall }

func (h *changingHooks) Around(ctx context.Context, call HookCall, send func(context.Context, json.RawMessage) (json.RawMessage, error)) (json.RawMessage, error) {
	h.change()
	return send(ctx, call.Params)
}

// A call whose upstream is restarted or gets another configuration after the lookup goes to
// the replacement, if the tool is still offered. A call to a removed upstream is refused.
func TestCallsDuringReconfiguration(t *testing.T) {
	t.Parallel()
	one := Entry{Spec: upstream.Spec{Name: "one", Command: os.Args[0], Env: map[string]string{upstreamtest.Variable: "good"}}}
	changed, hidden := one, one
	changed.Spec.Timeout = config.UpstreamTime(50 * time.Second)
	hidden.Spec.Timeout = config.UpstreamTime(40 * time.Second)
	hidden.Tools = map[string]config.UpstreamTool{"echo": {Hide: true}}
	elicitation := Capabilities{Elicitation: json.RawMessage(`{}`)}
	for name, c := range map[string]*Client{
		"shared session": {Session: "1"},
		"own session":    {Session: "1", Capabilities: elicitation},
		"parked calls":   {Modern: true, Capabilities: elicitation},
	} {
		for what, step := range map[string]struct {
			change func(*Gateway) error
			want   string
		}{
			"restart": {func(g *Gateway) error { return g.Restart("one") }, `"text":"x"`},
			"change":  {func(g *Gateway) error { return g.Configure(Settings{Upstreams: []Entry{changed}}) }, `"text":"x"`},
			"hide":    {func(g *Gateway) error { return g.Configure(Settings{Upstreams: []Entry{hidden}}) }, "was removed or is being restarted"},
			"remove":  {func(g *Gateway) error { return g.Configure(Settings{}) }, "was removed or is being restarted"},
		} {
			hooks := &changingHooks{}
			g, err := New(Options{Upstreams: []Entry{one}, Hooks: hooks, Key: []byte(strings.Repeat("k", 32))})
			if err != nil {
				t.Fatal(err)
			}
			hooks.change = func() {
				old := g.findMember("one")
				if err := step.change(g); err != nil {
					t.Error(err)
				}
				<-old.Closing()
			}
			result, err := g.Call(t.Context(), c, Request{Name: "one__echo", Arguments: json.RawMessage(`{"text":"x"}`)})
			if err != nil || !strings.Contains(string(result), step.want) {
				t.Errorf("%s, %s: the call returned %s, %v; want %s", name, what, result, err, step.want)
			}
			g.Close(t.Context())
		}
	}
}

// changingObserver changes the configuration after the lookup of a request.
type changingObserver struct{ change func() }

func (o *changingObserver) Begin(ctx context.Context, _ *Exchange) context.Context {
	o.change()
	return ctx
}

func (o *changingObserver) End(context.Context, *Exchange) {}

// TestReplacedPromptNeedsApproval checks a prompts/get or completion/complete request whose
// upstream gets another configuration after the lookup. It goes to the replacement only if
// the prompt of the replacement is approved.
func TestReplacedPromptNeedsApproval(t *testing.T) {
	t.Parallel()
	newUpstream := func(mode, other string) []Entry {
		return []Entry{{Spec: upstream.Spec{Name: "one", Command: os.Args[0], Env: map[string]string{upstreamtest.Variable: mode, "OTHER": other}}}}
	}
	c := &Client{Session: "1"}
	for method, send := range map[string]func(*Gateway) (json.RawMessage, error){
		"prompts/get": func(g *Gateway) (json.RawMessage, error) {
			return g.GetPrompt(t.Context(), c, Request{Name: "one__greet"})
		},
		"completion/complete": func(g *Gateway) (json.RawMessage, error) {
			return g.Complete(t.Context(), c, json.RawMessage(`{"type":"ref/prompt","name":"one__greet"}`), json.RawMessage(`{"argument":{"name":"who","value":"a"}}`))
		},
	} {
		for name, tt := range map[string]struct {
			next []Entry
			want string
		}{
			"equal prompt":   {newUpstream("good", "1"), "<nil>"},
			"changed prompt": {newUpstream(upstreamtest.Growing, ""), "was removed or is being restarted"},
		} {
			o := &changingObserver{}
			g, err := New(Options{Upstreams: newUpstream("good", ""), Pins: &memoryPins{}, Observer: o, Key: []byte(strings.Repeat("k", 32))})
			if err != nil {
				t.Fatal(err)
			}
			o.change = func() {
				old := g.findMember("one")
				if err := g.Configure(Settings{Upstreams: tt.next}); err != nil {
					t.Error(err)
				}
				<-old.Closing()
			}
			if result, err := send(g); !strings.Contains(fmt.Sprint(err), tt.want) {
				t.Errorf("%s, %s: the answer is %s, %v; want %s", method, name, result, err, tt.want)
			}
			g.Close(t.Context())
		}
	}
}
