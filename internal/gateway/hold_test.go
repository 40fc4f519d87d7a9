package gateway_test

import (
	"context"
	"encoding/json"
	"maps"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/gateway"
	"github.com/guideway-dev/guideway/internal/gateway/holds"
	"github.com/guideway-dev/guideway/internal/gateway/upstream/upstreamtest"
	"github.com/guideway-dev/guideway/internal/workflow/toolpolicy"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// holdFixture is a gateway that holds calls, with a clock that tests set.
type holdFixture struct {
	*fixture
	entry gateway.Entry
	holds *holds.Store
	path  string
	at    atomic.Int64
}

// newHoldFixture returns a gateway that holds the tools one__count, one__params and one__ask.
func newHoldFixture(t *testing.T, mode, way string, change ...func(*gateway.Options)) *holdFixture {
	t.Helper()
	h := &holdFixture{entry: newEntry(t, "one", mode), path: filepath.Join(t.TempDir(), "held-calls.json")}
	h.at.Store(time.Now().UnixMilli())
	h.holds = h.openHolds()
	opts := gateway.Options{
		Upstreams: []gateway.Entry{h.entry}, Holds: h.holds, Now: h.now,
		Tools: &toolpolicy.Policy{Hold: []toolpolicy.Rule{{Tool: "one__count"}, {Tool: "one__params"}, {Tool: "one__ask"}}},
	}
	for _, f := range change {
		f(&opts)
	}
	h.fixture = newFixture(t, opts, way)
	return h
}

func (h *holdFixture) openHolds() *holds.Store {
	return holds.New(holds.Options{Path: h.path, Key: func() ([]byte, error) { return []byte("key"), nil }, Now: h.now})
}

func (h *holdFixture) now() time.Time { return time.UnixMilli(h.at.Load()) }

func (h *holdFixture) advance(d time.Duration) { h.at.Add(d.Milliseconds()) }

// answer answers a held call as a person at a terminal.
func (h *holdFixture) answer(t *testing.T, user, text string, approve bool) {
	t.Helper()
	_, err := h.holds.Answer(t.Context(), holds.AnswerRequest{ID: heldID(t, text), User: user, Answer: holds.Answer{Approve: approve, By: user, Via: "terminal"}})
	if err != nil {
		t.Fatal(err)
	}
}

// heldID returns the ID of the held call in an answer of the gateway.
func heldID(t *testing.T, text string) string {
	t.Helper()
	id := regexp.MustCompile(`"heldCall":"(hc_\w+)"`).FindStringSubmatch(text)
	if id == nil {
		t.Fatalf("the answer names no held call: %s", text)
	}
	return id[1]
}

func checkWaits(t *testing.T, got string) {
	t.Helper()
	if !strings.HasPrefix(got, "isError:") || !strings.Contains(got, `"rule":"call-held"`) || !strings.Contains(got, "guideway calls approve hc_") || !strings.Contains(got, "unchanged") {
		t.Errorf("the answer is %s, want that of a held call", got)
	}
}

// TestHeldCall checks that a held call is sent only after a person approved it, once, for
// every pair of protocol versions, and that a denied call is refused.
func TestHeldCall(t *testing.T) {
	t.Parallel()
	forEachVersionPair(t, func(t *testing.T, version, mode, way string) {
		h := newHoldFixture(t, mode, way)
		p := h.connectClient(t, clientSetup{user: "ann", version: version, mute: true})
		p.toolNames()
		if got := p.callTool("one__echo", args{"text": "free"}); got != "free" {
			t.Errorf("a call that is not held returned %s", got)
		}
		first := p.callTool("one__count", args{"text": "a"})
		checkWaits(t, first)
		if again := p.callTool("one__count", args{"text": "a"}); heldID(t, again) != heldID(t, first) {
			t.Errorf("the repeated call is another held call: %s", again)
		}
		if n := countCalls(h.entry); n != 0 {
			t.Fatalf("%d calls were sent without an approval", n)
		}
		h.answer(t, "ann", first, true)
		if got := p.callTool("one__count", args{"text": "a"}); got != "counted" {
			t.Errorf("the approved call returned %s", got)
		}
		next := p.callTool("one__count", args{"text": "a"})
		checkWaits(t, next)
		h.answer(t, "ann", next, false)
		for range 2 {
			if got := p.callTool("one__count", args{"text": "a"}); !strings.Contains(got, `"rule":"call-denied"`) || heldID(t, got) != heldID(t, next) {
				t.Errorf("the denied call returned %s", got)
			}
		}
		if n := countCalls(h.entry); n != 1 {
			t.Errorf("%d calls were sent, want 1", n)
		}
	})
}

// TestApprovalOfOneCall checks that an approval covers no other arguments, no other client, no
// other user, and no call after its expiry.
func TestApprovalOfOneCall(t *testing.T) {
	t.Parallel()
	h := newHoldFixture(t, "", "")
	p := h.connectClient(t, clientSetup{user: "ann", version: modern, mute: true})
	p.toolNames()
	h.answer(t, "ann", p.callTool("one__count", args{"text": "a"}), true)
	for _, other := range []clientSetup{{user: "ann", version: modern, mute: true, name: "codex"}, {user: "bob", version: modern, mute: true}} {
		checkWaits(t, h.connectClient(t, other).callTool("one__count", args{"text": "a"}))
	}
	checkWaits(t, p.callTool("one__count", args{"text": "b"}))
	checkWaits(t, p.callTool("one__count", args{"text": "a", "more": true}))
	h.advance(holds.DefaultUseWithin)
	checkWaits(t, p.callTool("one__count", args{"text": "a"}))
	if n := countCalls(h.entry); n != 0 {
		t.Errorf("%d calls were sent", n)
	}
}

// TestRacingHeldCalls checks that one of 64 concurrent calls is sent after one approval.
func TestRacingHeldCalls(t *testing.T) {
	t.Parallel()
	h := newHoldFixture(t, "", "")
	p := h.connectClient(t, clientSetup{user: "ann", version: legacy, mute: true})
	p.toolNames()
	h.answer(t, "ann", p.callTool("one__count", args{"text": "a"}), true)
	var all sync.WaitGroup
	var sent atomic.Int32
	for range 64 {
		all.Go(func() {
			if p.callTool("one__count", args{"text": "a"}) == "counted" {
				sent.Add(1)
			}
		})
	}
	all.Wait()
	if sent.Load() != 1 || countCalls(h.entry) != 1 {
		t.Errorf("%d calls succeeded and %d were sent, want 1", sent.Load(), countCalls(h.entry))
	}
}

// TestHeldCallAfterRestart checks that an approval is valid after a restart, and that a used
// one is not.
func TestHeldCallAfterRestart(t *testing.T) {
	t.Parallel()
	h := newHoldFixture(t, "", "")
	connect := clientSetup{user: "ann", version: legacy, mute: true}
	h.answer(t, "ann", h.connectClient(t, connect).callTool("one__count", args{"text": "a"}), true)
	restart := func() *testClient {
		return newFixture(t, gateway.Options{
			Upstreams: []gateway.Entry{h.entry}, Holds: h.openHolds(), Now: h.now,
			Tools: &toolpolicy.Policy{Hold: []toolpolicy.Rule{{Tool: "one__count"}}},
		}).connectClient(t, connect)
	}
	if got := restart().callTool("one__count", args{"text": "a"}); got != "counted" {
		t.Errorf("after the restart the approved call returned %s", got)
	}
	checkWaits(t, restart().callTool("one__count", args{"text": "a"}))
}

// TestHeldCallOfChangedUpstream checks that an approval does not cover a tool whose definition
// changed, or an upstream whose configuration changed.
func TestHeldCallOfChangedUpstream(t *testing.T) {
	t.Parallel()
	hold := func(o *gateway.Options) { o.Tools.Hold = []toolpolicy.Rule{{Tool: "one__*"}} }
	t.Run("definition", func(t *testing.T) {
		t.Parallel()
		h := newHoldFixture(t, upstreamtest.Changing, "", hold)
		p := h.connectClient(t, clientSetup{user: "ann", version: legacy, mute: true})
		p.toolNames()
		h.answer(t, "ann", p.callTool("one__echo", args{"text": "a"}), true)
		if err := h.Refresh(t.Context(), "one", ""); err != nil {
			t.Fatal(err)
		}
		h.Reload()
		checkWaits(t, p.callTool("one__echo", args{"text": "a"}))
	})
	t.Run("configuration", func(t *testing.T) {
		t.Parallel()
		h := newHoldFixture(t, "", "", hold)
		p := h.connectClient(t, clientSetup{user: "ann", version: legacy, mute: true})
		p.toolNames()
		h.answer(t, "ann", p.callTool("one__count", args{"text": "a"}), true)
		changed := newEntry(t, "one", upstreamtest.Growing)
		if err := h.Configure(gateway.Settings{Upstreams: []gateway.Entry{changed}, Tools: &toolpolicy.Policy{Hold: []toolpolicy.Rule{{Tool: "one__*"}}}}); err != nil {
			t.Fatal(err)
		}
		p.toolNames()
		checkWaits(t, p.callTool("one__count", args{"text": "a"}))
		if countCalls(changed) != 0 {
			t.Error("the call was sent to the changed upstream")
		}
	})
}

// TestHeldCallByForm checks that the answer of a person in a form of the client decides on
// the waiting call, and that a form that no person can have read decides nothing.
func TestHeldCallByForm(t *testing.T) {
	t.Parallel()
	accept := func(answer string) *mcp.ElicitResult {
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"answer": answer, "note": "because"}}
	}
	for name, tt := range map[string]struct {
		result *mcp.ElicitResult
		took   time.Duration
		want   string
		status holds.Status
	}{
		"approved":             {accept("approve"), time.Second, "counted", holds.Used},
		"denied":               {accept("deny"), time.Second, `"rule":"call-denied"`, holds.Denied},
		"approved at once":     {accept("approve"), 999 * time.Millisecond, `"rule":"call-held"`, holds.Waiting},
		"denied at once":       {accept("deny"), 0, `"rule":"call-held"`, holds.Waiting},
		"declined by a person": {&mcp.ElicitResult{Action: "decline"}, time.Second, `"rule":"call-held"`, holds.Waiting},
		"cancelled at once":    {&mcp.ElicitResult{Action: "cancel"}, time.Millisecond, `"rule":"call-held"`, holds.Waiting},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check := func(t *testing.T, version, mode, way string) {
				h := newHoldFixture(t, mode, way)
				p := h.connectClient(t, clientSetup{user: "ann", version: version, elicit: func(*mcp.ElicitRequest) *mcp.ElicitResult {
					h.advance(tt.took)
					// The client changes the result, and the versions run in parallel.
					return &mcp.ElicitResult{Action: tt.result.Action, Content: maps.Clone(tt.result.Content)}
				}})
				p.toolNames()
				got := p.callTool("one__count", args{"text": "\u202edel /\u200b"})
				if !strings.Contains(got, tt.want) {
					t.Errorf("the answer is %s, want %s", got, tt.want)
				}
				list, err := h.holds.List("ann")
				if err != nil || len(list) != 1 || list[0].Status != tt.status {
					t.Fatalf("the held calls are %+v %v", list, err)
				}
				if sent := countCalls(h.entry); (sent == 1) != (tt.status == holds.Used) || sent > 1 {
					t.Errorf("%d calls were sent", sent)
				}
				asked := p.takeEntries(&p.asked)
				if len(asked) != 1 || !strings.Contains(asked[0], `one__count`) || !strings.Contains(asked[0], `\u{202E}del /\u{200B}`) {
					t.Errorf("the person was asked %q", asked)
				}
			}
			if tt.status == holds.Used {
				forEachVersionPair(t, check)
				return
			}
			check(t, legacy, "", "")
			check(t, modern, "", "")
		})
	}
}

// TestClosedHoldForms checks that a person is not asked again at once, and that a client that
// closes a form before a person can read it gets no other.
func TestClosedHoldForms(t *testing.T) {
	t.Parallel()
	for _, version := range []string{legacy, modern} {
		for name, tt := range map[string]struct {
			took time.Duration
			want int
		}{"a person": {time.Second, 2}, "the client": {0, 1}} {
			t.Run(version+" "+name, func(t *testing.T) {
				t.Parallel()
				h := newHoldFixture(t, "", "")
				p := h.connectClient(t, clientSetup{user: "ann", version: version, elicit: func(*mcp.ElicitRequest) *mcp.ElicitResult {
					h.advance(tt.took)
					return &mcp.ElicitResult{Action: "decline"}
				}})
				for range 2 {
					checkWaits(t, p.callTool("one__count", args{"text": "a"}))
				}
				if n := len(p.takeEntries(&p.asked)); n != 1 {
					t.Errorf("the person was asked %d times within a minute", n)
				}
				h.advance(time.Minute)
				checkWaits(t, p.callTool("one__count", args{"text": "a"}))
				if n := len(p.takeEntries(&p.asked)); n != tt.want {
					t.Errorf("the person was asked %d times, want %d", n, tt.want)
				}
			})
		}
	}
}

// TestOneFormForOneCall checks that concurrent calls of one client open one form, and that
// its answer sends one call.
func TestOneFormForOneCall(t *testing.T) {
	t.Parallel()
	h := newHoldFixture(t, "", "")
	open, answered := make(chan struct{}), make(chan struct{})
	p := h.connectClient(t, clientSetup{user: "ann", version: legacy, elicit: func(*mcp.ElicitRequest) *mcp.ElicitResult {
		close(open) // A second form would panic.
		<-answered
		h.advance(time.Second)
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"answer": "approve"}}
	}})
	p.toolNames()
	var first sync.WaitGroup
	first.Go(func() {
		if got := p.callTool("one__count", args{"text": "a"}); got != "counted" {
			t.Errorf("the approved call returned %s", got)
		}
	})
	<-open
	checkWaits(t, p.callTool("one__count", args{"text": "a"}))
	close(answered)
	first.Wait()
	if n := countCalls(h.entry); n != 1 {
		t.Errorf("%d calls were sent, want 1", n)
	}
}

// TestHeldCallThatAsks checks that an approved call whose upstream asks a question continues
// after the answer without a second approval.
func TestHeldCallThatAsks(t *testing.T) {
	t.Parallel()
	forEachVersionPair(t, func(t *testing.T, version, mode, way string) {
		h := newHoldFixture(t, mode, way)
		p := h.connectClient(t, clientSetup{user: "ann", version: version, elicit: func(req *mcp.ElicitRequest) *mcp.ElicitResult {
			h.advance(time.Second)
			if strings.Contains(req.Params.Message, "waits for your approval") {
				return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"answer": "approve"}}
			}
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"ok": "fine"}}
		}})
		p.toolNames()
		if got := p.callTool("one__ask", args{"text": "sure?"}); !strings.Contains(got, "fine") {
			t.Errorf("the answer is %s", got)
		}
		if asked := p.takeEntries(&p.asked); len(asked) != 2 {
			t.Errorf("the person was asked %q", asked)
		}
	})
}

// TestContinuedCallWithOtherArguments checks that a modern client cannot change the arguments
// of an approved call when it returns the answer to a question of the upstream.
func TestContinuedCallWithOtherArguments(t *testing.T) {
	t.Parallel()
	h := newHoldFixture(t, upstreamtest.Modern, "")
	c := &gateway.Client{Modern: true, Capabilities: gateway.Capabilities{Elicitation: json.RawMessage(`{}`)}}
	c.Principal.User, c.Principal.Client = "ann", "raw"
	call := func(arguments, responses, state string) map[string]any {
		r := gateway.Request{Name: "one__ask", Arguments: json.RawMessage(arguments), State: state}
		if responses != "" {
			r.Responses = json.RawMessage(responses)
		}
		result, err := h.Call(t.Context(), c, r)
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]any
		if err := json.Unmarshal(result, &got); err != nil {
			t.Fatal(err)
		}
		return got
	}
	form := call(`{"text":"good"}`, "", "")
	h.advance(time.Second)
	none := call(`{"text":"good"}`, `{"held-call":{"action":"accept","content":{"answer":"yes"}}}`, form["requestState"].(string))
	if text := marshalText(t, none); !strings.Contains(text, "call-held") {
		t.Errorf("an unknown answer decides: %s", text)
	}
	asks := call(`{"text":"good"}`, `{"held-call":{"action":"accept","content":{"answer":"approve"}}}`, form["requestState"].(string))
	if text := marshalText(t, asks); !strings.Contains(text, `asks: good`) {
		t.Fatalf("the upstream did not ask: %s", text)
	}
	evil := call(`{"text":"evil"}`, `{"q":{"action":"accept"}}`, asks["requestState"].(string))
	if text := marshalText(t, evil); !strings.Contains(text, "waits for your approval") {
		t.Errorf("changed arguments were sent: %s", text)
	}
	good := call(`{"text":"good"}`, `{"q":{"action":"accept"}}`, asks["requestState"].(string))
	if text := marshalText(t, good); !strings.Contains(text, "state of good") {
		t.Errorf("the unchanged call did not continue: %s", text)
	}
}

// TestHeldCallWithoutMeta checks that an approved call sends nothing that the person did not
// see.
func TestHeldCallWithoutMeta(t *testing.T) {
	t.Parallel()
	h := newHoldFixture(t, "", "")
	p := h.connectClient(t, clientSetup{user: "ann", version: legacy, mute: true})
	params := &mcp.CallToolParams{Name: "one__params", Arguments: args{"text": "a"}, Meta: mcp.Meta{"secret/order": "delete"}}
	call := func() string {
		result, err := p.session.CallTool(t.Context(), params)
		if err != nil {
			t.Fatal(err)
		}
		return result.Content[0].(*mcp.TextContent).Text
	}
	h.answer(t, "ann", call(), true)
	if got := call(); !strings.Contains(got, `"text":"a"`) || strings.Contains(got, "secret/order") {
		t.Errorf("the upstream got %s", got)
	}
}

// TestHoldRules checks the kinds of rules of the configuration. A duplicate member does not
// evade a rule about arguments.
func TestHoldRules(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		rule      toolpolicy.Rule
		arguments string
		held      bool
	}{
		"tool":                  {toolpolicy.Rule{Tool: "one__*"}, `{}`, true},
		"other tool":            {toolpolicy.Rule{Tool: "two__*"}, `{}`, false},
		"destructive":           {toolpolicy.Rule{Tool: "*", Annotations: map[string]bool{"destructive": true}}, `{}`, true},
		"read only":             {toolpolicy.Rule{Tool: "*", Annotations: map[string]bool{"readOnly": true}}, `{}`, false},
		"argument":              {toolpolicy.Rule{Tool: "*", Arguments: map[string]string{"text": "rm *"}}, `{"text":"rm -r"}`, true},
		"other argument":        {toolpolicy.Rule{Tool: "*", Arguments: map[string]string{"text": "rm *"}}, `{"text":"ls"}`, false},
		"other first argument":  {toolpolicy.Rule{Tool: "*", Arguments: map[string]string{"text": "rm *"}}, `{"text":"rm -r","text":"ls"}`, true},
		"other second argument": {toolpolicy.Rule{Tool: "*", Arguments: map[string]string{"text": "rm *"}}, `{"text":"ls","text":"rm -r"}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHoldFixture(t, "", "", func(o *gateway.Options) { o.Tools.Hold = []toolpolicy.Rule{tt.rule} })
			c := &gateway.Client{}
			c.Principal.User, c.Principal.Client = "ann", "raw"
			h.Tools(t.Context(), c)
			result, err := h.Call(t.Context(), c, gateway.Request{Name: "one__count", Arguments: json.RawMessage(tt.arguments)})
			if err != nil || strings.Contains(string(result), "isError") != tt.held || countCalls(h.entry) == 1 == tt.held {
				t.Errorf("held is %t, want %t: %s %v", !tt.held, tt.held, result, err)
			}
		})
	}
}

// holdHooks changes the arguments of calls, and then holds the calls.
type holdHooks struct{ tool string }

func (holdHooks) Versions(string, string) map[string]string { return nil }

func (h holdHooks) Applies(method, _, tool string) bool {
	return method == "tools/call" && tool == h.tool
}

func (h holdHooks) Around(ctx context.Context, call gateway.HookCall, send func(context.Context, json.RawMessage) (json.RawMessage, error)) (json.RawMessage, error) {
	params := strings.Replace(string(call.Params), `"text":"a"`, `"text":"changed"`, 1)
	return send(gateway.WithHold(ctx, "the hook wants it"), json.RawMessage(params))
}

// TestHeldByHook checks that a hook can hold a call, and that the person approves the
// arguments as the hooks have changed them.
func TestHeldByHook(t *testing.T) {
	t.Parallel()
	forEachVersionPair(t, func(t *testing.T, version, mode, way string) {
		h := newHoldFixture(t, mode, way, func(o *gateway.Options) { o.Tools, o.Hooks = nil, holdHooks{"echo"} })
		p := h.connectClient(t, clientSetup{user: "ann", version: version, mute: true})
		p.toolNames()
		first := p.callTool("one__echo", args{"text": "a"})
		checkWaits(t, first)
		if !strings.Contains(first, "the hook wants it") {
			t.Errorf("the reason is missing: %s", first)
		}
		c, err := h.holds.Get("ann", heldID(t, first))
		if err != nil || !strings.Contains(c.ShownArguments(), "changed") {
			t.Errorf("the held call is %+v %v", c, err)
		}
		h.answer(t, "ann", first, true)
		if got := p.callTool("one__echo", args{"text": "a"}); got != "changed" {
			t.Errorf("the approved call returned %s", got)
		}
		checkWaits(t, p.callTool("one__echo", args{"text": "a"}))
	})
}

// TestHoldWithoutStore checks that a call is refused if nothing can hold it.
func TestHoldWithoutStore(t *testing.T) {
	t.Parallel()
	h := newHoldFixture(t, "", "", func(o *gateway.Options) { o.Holds = nil })
	p := h.connectClient(t, clientSetup{user: "ann", version: legacy})
	if got := p.callTool("one__count", args{}); !strings.Contains(got, "refused") || countCalls(h.entry) != 0 {
		t.Errorf("the answer is %s", got)
	}
}

// TestObservedHolds checks the outcomes of held calls in the observation.
func TestObservedHolds(t *testing.T) {
	t.Parallel()
	seen := &outcomes{}
	h := newHoldFixture(t, "", "", func(o *gateway.Options) { o.Observer = seen })
	p := h.connectClient(t, clientSetup{user: "ann", version: legacy, mute: true})
	p.toolNames()
	first := p.callTool("one__count", args{})
	h.answer(t, "ann", first, true)
	p.callTool("one__count", args{})
	next := p.callTool("one__count", args{})
	h.answer(t, "ann", next, false)
	p.callTool("one__count", args{})
	want := strings.Join([]string{"held " + heldID(t, first), "ok " + heldID(t, first), "held " + heldID(t, next), "denied " + heldID(t, next)}, ", ")
	if got := strings.Join(seen.all(), ", "); got != want {
		t.Errorf("the outcomes are %s, want %s", got, want)
	}
}

// outcomes collects the outcomes of calls.
type outcomes struct {
	mu   sync.Mutex
	list []string
}

func (o *outcomes) Begin(ctx context.Context, _ *gateway.Exchange) context.Context { return ctx }

func (o *outcomes) End(_ context.Context, x *gateway.Exchange) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if x.Method == "tools/call" {
		o.list = append(o.list, string(x.Outcome)+" "+x.Held)
	}
}

func (o *outcomes) all() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.list
}

// TestFormsOfOthersAnswerNoHeldCall checks that a client with a named token or an access token
// is not asked about a held call, and that a form of its own making answers none.
func TestFormsOfOthersAnswerNoHeldCall(t *testing.T) {
	t.Parallel()
	h := newHoldFixture(t, upstreamtest.Modern, "")
	call := func(token string, roles []guideway.Role, responses, state string) (text string) {
		c := &gateway.Client{Modern: true, Holder: token, Capabilities: gateway.Capabilities{Elicitation: json.RawMessage(`{}`)}}
		c.Principal = guideway.Principal{User: "bob", Client: "raw", Roles: roles}
		r := gateway.Request{Name: "one__ask", Arguments: json.RawMessage(`{"text":"good"}`), State: state}
		if responses != "" {
			r.Responses = json.RawMessage(responses)
		}
		result, err := h.Call(t.Context(), c, r)
		if err != nil {
			return err.Error()
		}
		return string(result)
	}
	for _, roles := range [][]guideway.Role{{}, {guideway.RoleOperator}, {guideway.RoleAdmin}, nil} {
		if got := call("laptop", roles, "", ""); !strings.Contains(got, "call-held") || strings.Contains(got, "requestState") {
			t.Errorf("with the roles %v the client is asked: %s", roles, got)
		}
	}
	var form struct{ RequestState string }
	if err := json.Unmarshal([]byte(call("", nil, "", "")), &form); err != nil || form.RequestState == "" {
		t.Fatalf("the local user is not asked: %+v, %v", form, err)
	}
	h.advance(time.Minute)
	answer := `{"held-call":{"action":"accept","content":{"answer":"approve"}}}`
	if got := call("", []guideway.Role{guideway.RoleAdmin}, answer, form.RequestState); !strings.Contains(got, "not the answer of a person") {
		t.Errorf("a form of an admin answers the call: %s", got)
	}
	if got := call("laptop", nil, answer, form.RequestState); !strings.Contains(got, "the requestState is invalid") {
		t.Errorf("a form of a named token answers the call: %s", got)
	}
}
