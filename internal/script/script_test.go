package script_test

import (
	"testing"

	"github.com/guideway-dev/guideway/internal/script"
)

func TestFirst(t *testing.T) {
	t.Parallel()
	p := newPool(t, script.Options{})
	t.Log(value(t, p, with(source(`context.request.params.x = 1; console.log("hi", {a: 1}); return {continue: true, context}`), `{"request":{"params":{}}}`)))
	t.Log(value(t, p, source(`export default () => [new Date(0).toString(), Object.getOwnPropertyNames(globalThis).length]`)))
	e := failed(t, p, source("\n  null.x"))
	t.Logf("%+v", e)
	e = failed(t, p, source("export default function f() {\n  while (true);\n}"))
	t.Logf("%+v", e)
}
