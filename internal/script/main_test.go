package script_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/guideway-dev/guideway/internal/script"
	"github.com/guideway-dev/guideway/internal/script/worker"
	"go.uber.org/goleak"
)

// The test binary is its own worker.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "unfiltered-worker" {
		withoutFilters() // as a container may be that forbids them
	}
	if len(os.Args) == 2 && (os.Args[1] == "script-worker" || os.Args[1] == "unfiltered-worker") {
		if err := worker.Main(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// newPool makes a pool that is closed with the test.
func newPool(tb testing.TB, o script.Options) *script.Pool {
	tb.Helper()
	o.Log = slog.New(slog.NewTextHandler(tb.Output(), nil))
	p, err := script.NewPool(o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := p.Close(ctx); err != nil {
			tb.Errorf("close the pool: %v", err)
		}
	})
	return p
}

// source is a call of a script without arguments.
func source(text string) script.Call {
	return script.Call{Module: script.Module{Name: "hook.js", Source: text}}
}

// with gives a call an argument.
func with(c script.Call, args ...string) script.Call {
	for _, a := range args {
		c.Args = append(c.Args, json.RawMessage(a))
	}
	return c
}

// value runs a call that has to succeed and gives the JSON of its result.
func value(tb testing.TB, p *script.Pool, c script.Call) string {
	tb.Helper()
	return string(result(tb, p, c).Value)
}

func result(tb testing.TB, p *script.Pool, c script.Call) *script.Result {
	tb.Helper()
	r, err := p.Run(tb.Context(), c)
	if err != nil {
		var e *script.Error
		if errors.As(err, &e) {
			tb.Fatalf("%s: %v\n%s\n%v", e.Kind, e, e.Stack, e.Console)
		}
		tb.Fatal(err)
	}
	return r
}

// failed runs a call that has to fail.
func failed(tb testing.TB, p *script.Pool, c script.Call) *script.Error {
	tb.Helper()
	r, err := p.Run(tb.Context(), c)
	var e *script.Error
	if !errors.As(err, &e) {
		tb.Fatalf("got %+v and error %v, want a script's error", r, err)
	}
	return e
}
