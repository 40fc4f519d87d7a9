package sandbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/guideway-dev/guideway/internal/hooks/sandbox"
	"github.com/guideway-dev/guideway/internal/hooks/sandbox/worker"
	"go.uber.org/goleak"
)

// The test binary is also the script worker.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "unfiltered-worker" {
		withoutFilters() // simulate a container that forbids system call filters
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

// newPool returns a pool that is closed at the end of the test.
func newPool(tb testing.TB, o sandbox.Options) *sandbox.Pool {
	tb.Helper()
	o.Log = slog.New(slog.NewTextHandler(tb.Output(), nil))
	p, err := sandbox.NewPool(o)
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

// newCall returns a call of a script without arguments.
func newCall(text string) sandbox.Call {
	return sandbox.Call{Module: sandbox.Module{Name: "hook.js", Source: text}}
}

// withArgs adds arguments to a call.
func withArgs(c sandbox.Call, args ...string) sandbox.Call {
	for _, a := range args {
		c.Args = append(c.Args, json.RawMessage(a))
	}
	return c
}

// runValue runs a successful call and returns the JSON of its result.
func runValue(tb testing.TB, p *sandbox.Pool, c sandbox.Call) string {
	tb.Helper()
	return string(runCall(tb, p, c).Value)
}

func runCall(tb testing.TB, p *sandbox.Pool, c sandbox.Call) *sandbox.Result {
	tb.Helper()
	r, err := p.Run(tb.Context(), c)
	if err != nil {
		var e *sandbox.Error
		if errors.As(err, &e) {
			tb.Fatalf("%s: %v\n%s\n%v", e.Kind, e, e.Stack, e.Console)
		}
		tb.Fatal(err)
	}
	return r
}

// runError runs a failing call and returns its error.
func runError(tb testing.TB, p *sandbox.Pool, c sandbox.Call) *sandbox.Error {
	tb.Helper()
	r, err := p.Run(tb.Context(), c)
	var e *sandbox.Error
	if !errors.As(err, &e) {
		tb.Fatalf("got %+v and error %v, want a script's error", r, err)
	}
	return e
}
