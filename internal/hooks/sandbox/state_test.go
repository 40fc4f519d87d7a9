package sandbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/hooks/sandbox"
)

// The functions of state send their arguments to the host and return its answer.
func TestState(t *testing.T) {
	t.Parallel()
	p := newPool(t, sandbox.Options{})
	var asked []string
	c := newCall(`return [
		state.client.get("k"), state.upstream.set("k", { a: "é" }, { ttl: 5, if: null }), state.global.incr("n"),
		state.global.incr("n", -2, { ttl: NaN }), state.client.set(1), typeof (await sleep(1)) ]`)
	c.Host = func(_ context.Context, question []byte) (json.RawMessage, error) {
		asked = append(asked, string(question))
		return json.RawMessage(`{"n":` + string(rune('0'+len(asked))) + `}`), nil
	}
	if got, want := runValue(t, p, c), `[{"n":1},{"n":2},{"n":3},{"n":4},{"n":5},"undefined"]`; got != want {
		t.Errorf("the script got %s, want %s", got, want)
	}
	if diff := cmp.Diff([]string{
		`{"op":"get","scope":"client","key":"k"}`,
		`{"value":{"a":"é"},"ttl":5,"if":null,"op":"set","scope":"upstream","key":"k"}`,
		`{"by":1,"op":"incr","scope":"global","key":"n"}`,
		`{"by":-2,"ttl":null,"op":"incr","scope":"global","key":"n"}`,
		`{"op":"set","scope":"client","key":"1"}`,
	}, asked); diff != "" {
		t.Error(diff)
	}
}

// An error of the host is an exception with its fix, which the script may catch; so is the
// lack of a host, a value that is too large and the use of the state without end.
func TestStateErrors(t *testing.T) {
	t.Parallel()
	p := newPool(t, sandbox.Options{})
	c := newCall(`state.client.get("k")`)
	if e := runError(t, p, c); e.Kind != sandbox.Exception || !strings.Contains(e.Message, "state.client.get: only hooks") {
		t.Errorf("without a host: %s %s", e.Kind, e.Message)
	}
	var asked atomic.Int32
	c.Host = func(context.Context, []byte) (json.RawMessage, error) {
		asked.Add(1)
		return nil, guideway.Errorf(guideway.CodeInvalid, "no room").WithFix("make room")
	}
	if e := runError(t, p, c); e.Kind != sandbox.Exception || e.Message != "Error: state.client.get: no room; make room" || e.Line != 1 {
		t.Errorf("%s %s at line %d", e.Kind, e.Message, e.Line)
	}
	c.Module.Source = `let n = 0; for (let i = 0; i < 150; i++) try { state.client.get("k") } catch (e) { if (e.message.includes("the maximum")) n++ } return n`
	asked.Store(0)
	if got := runValue(t, p, c); got != "50" || asked.Load() != 100 {
		t.Errorf("%s of 150 calls were refused, %d were asked", got, asked.Load())
	}
	c.Module.Source = `state.client.set("k", "x".repeat(2 ** 21))`
	if e := runError(t, p, c); e.Kind != sandbox.Exception || !strings.Contains(e.Message, "more than 1048576 bytes") {
		t.Errorf("a large value: %s %s", e.Kind, e.Message)
	}
	c.Host = func(context.Context, []byte) (json.RawMessage, error) { return json.RawMessage(`{`), errors.New("") }
	if e := runError(t, p, newCallWithHost(`state.client.get("k")`, c.Host)); e.Kind != sandbox.Exception {
		t.Errorf("an error without a message: %s %s", e.Kind, e.Message)
	}
	c.Host = func(context.Context, []byte) (json.RawMessage, error) { return json.RawMessage(`{`), nil }
	if e := runError(t, p, newCallWithHost(`state.client.get("k")`, c.Host)); !strings.Contains(e.Message, "invalid reply") {
		t.Errorf("an invalid reply: %s %s", e.Kind, e.Message)
	}
}

func newCallWithHost(text string, host sandbox.Host) sandbox.Call {
	c := newCall(text)
	c.Host = host
	return c
}

// A host that does not answer ends with the time of the script, and no call after it gets
// its answer.
func TestStateHangs(t *testing.T) {
	t.Parallel()
	p := newPool(t, sandbox.Options{Workers: 1, Burst: 1})
	c := newCallWithHost(`try { state.client.get("k") } catch {} return 1`, func(ctx context.Context, _ []byte) (json.RawMessage, error) {
		<-ctx.Done()
		return json.RawMessage(`"late"`), nil
	})
	c.Limits.Wall = 200 * time.Millisecond
	if e := runError(t, p, c); e.Kind != sandbox.Timeout {
		t.Errorf("%s %s", e.Kind, e.Message)
	}
	c.Host = func(context.Context, []byte) (json.RawMessage, error) { return json.RawMessage(`"own"`), nil }
	c.Module.Source, c.Limits.Wall = `return state.client.get("k")`, time.Minute
	if got := runValue(t, p, c); got != `"own"` {
		t.Errorf("the next call got %s", got)
	}
}
