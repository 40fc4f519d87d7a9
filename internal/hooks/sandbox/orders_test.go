package sandbox_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/guideway-dev/guideway/internal/hooks/sandbox"
	"pgregory.net/rapid"
)

// programs are scripts that may run in any order. The last five fail.
var programs = []string{
	`export default (n) => [n, typeof globalThis.left, Object.keys(globalThis).length, new Date().getTime(), Math.random()]`,
	`let calls = 0; const seen = new Map(); export default (n) => { seen.set(n, ++calls); return [...seen] }`,
	`import { kept } from "lib"; export default (n) => { kept.push(n); return kept }`,
	`const big = []; for (let i = 0; i < 20000; i++) big.push({ i, s: "s" + i }); export default (n) => big[n % 100].s + big.length`,
	`export default async (n) => { Promise.resolve().then(async () => { for (;;) await 0 }); await sleep(1); return n }`,
	`export default (n) => { const b = new Uint8Array(1 << 20).fill(n); return [b.length, b[77]] }`,
	`return String(context).replace(/(\d+)/g, (d) => "<" + d + ">")`,
	`export default (n) => { for (let i = 0; i < 300; i++) Symbol.for("k" + i + n); return JSON.stringify({ [n]: n }) }`,
	`export default (n) => { Symbol.for("k").description; return new Intl.None(n) }`,
	`export default (n) => { const f = () => f(); return f() }`,
	`export default (n) => { throw { toString() { throw n } } }`,
	`export default (n) => { const a = []; for (;;) a.push("x".repeat(1000) + a.length) }`,
	`export default (n) => n +`,
}

// A call returns the same in every worker, after any sequence of other calls.
func TestResultsDoNotDependOnOrder(t *testing.T) {
	t.Parallel()
	run := func(p *sandbox.Pool, which, n int) string {
		r, err := p.Run(t.Context(), sandbox.Call{
			Module:  sandbox.Module{Name: fmt.Sprintf("p%d.js", which), Source: programs[which]},
			Library: map[string]string{"lib": "export const kept = []"},
			Args:    []json.RawMessage{json.RawMessage(fmt.Sprint(n))},
			Limits:  sandbox.Limits{Memory: 8 << 20, Stack: 300, Wall: 20 * time.Second, CPU: 15 * time.Second},
			Fixed:   &sandbox.Fixed{Now: time.UnixMilli(int64(n)), Seed: uint64(n)},
		})
		var failure *sandbox.Error
		switch {
		case errors.As(err, &failure):
			return fmt.Sprintf("%s %s at %s:%d:%d", failure.Kind, failure.Message, failure.File, failure.Line, failure.Column)
		case err != nil:
			t.Fatal(err)
		}
		return fmt.Sprintf("%s %v", r.Value, r.Console)
	}
	alone := map[[2]int]string{}
	for which := range programs {
		for n := range 2 {
			p := newPool(t, sandbox.Options{Workers: 1, Burst: 1})
			alone[[2]int{which, n}] = run(p, which, n)
		}
	}
	together := newPool(t, sandbox.Options{Workers: 1, Burst: 1})
	orders := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) [2]int {
		return [2]int{rapid.IntRange(0, len(programs)-1).Draw(t, "program"), rapid.IntRange(0, 1).Draw(t, "argument")}
	}), 1, 12)
	rapid.Check(t, func(t *rapid.T) {
		for _, call := range orders.Draw(t, "calls") {
			if got := run(together, call[0], call[1]); got != alone[call] {
				t.Fatalf("program %d of %d gives %s, alone %s", call[0], call[1], got, alone[call])
			}
		}
	})
}
