package sandbox_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/guideway-dev/guideway/internal/hooks/sandbox"
)

// A worker parses a previous script before the next call. This has no visible effect: every
// call has its own script and library, even if names are equal, and evaluates them once,
// during the call.
func TestParseAheadDoesNotRun(t *testing.T) {
	t.Parallel()
	p := newPool(t, sandbox.Options{Workers: 1, Burst: 1})
	const main = `import { name } from "lib";
console.log("loaded", name);
let calls = 0;
export const at = Date.now();
export default () => [name, %d, ++calls, at]`
	call := func(number int, library string, now int64) sandbox.Call {
		return sandbox.Call{
			Module:  sandbox.Module{Name: "same.js", Source: fmt.Sprintf(main, number)},
			Library: map[string]string{"lib": `console.log("library"); export const name = "` + library + `"`},
			Fixed:   &sandbox.Fixed{Now: time.UnixMilli(now)},
		}
	}
	for i := range 40 {
		number, library := i%3/2, []string{"a", "b"}[i%5/4]
		r, err := p.Run(t.Context(), call(number, library, int64(1000+i)))
		if err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf(`["%s",%d,1,%d]`, library, number, 1000+i); string(r.Value) != want {
			t.Errorf("call %d gives %s, want %s", i, r.Value, want)
		}
		want := []sandbox.Line{{Level: "log", Text: "library"}, {Level: "log", Text: "loaded " + library}}
		if diff := cmp.Diff(want, r.Console); diff != "" {
			t.Errorf("the console of call %d (-want +got):\n%s", i, diff)
		}
	}
}

// Top-level code of a script runs within the call's limits, even if the script ran before.
func TestParsedAheadHasLimits(t *testing.T) {
	t.Parallel()
	p := newPool(t, sandbox.Options{Workers: 1, Burst: 1})
	c := sandbox.Call{Module: sandbox.Module{Source: `const a = []; while (a.length < Date.now()) a.push(1); export default (x) => [x, a.length]`}}
	for i := range 6 {
		c.Args = []json.RawMessage{json.RawMessage(fmt.Sprint(i))}
		c.Fixed = &sandbox.Fixed{Now: time.UnixMilli(3)}
		if got, want := runValue(t, p, c), fmt.Sprintf("[%d,3]", i); got != want {
			t.Errorf("call %d gives %s, want %s", i, got, want)
		}
	}
	c.Fixed.Now = time.UnixMilli(1e15)
	c.Limits = sandbox.Limits{Memory: 8 << 20}
	if e := runError(t, p, c); e.Kind != sandbox.Memory && e.Kind != sandbox.Timeout {
		t.Errorf("an endless script ended with %v, want Memory or Timeout", e)
	}
	c.Fixed.Now = time.UnixMilli(4)
	if got := runValue(t, p, c); got != "[5,4]" {
		t.Errorf("the next call returned %s, want [5,4]", got)
	}
}
