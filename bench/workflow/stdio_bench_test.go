package workflow

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	mcpserver "github.com/guideway-dev/guideway/internal/mcp"
	"github.com/guideway-dev/guideway/internal/mcp/transport"
)

// BenchmarkStdio measures workflow_next through the whole server in one process, so that a
// profile covers the whole call:
//
//	go test ./workflow -run '^$' -bench Stdio -cpuprofile cpu.prof
func BenchmarkStdio(b *testing.B) {
	w, err := newWorkplace(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	cat := catalog.New(catalog.Standard(catalog.Layout{Custom: []string{w.json}}), catalog.Options{})
	if err := cat.Load(b.Context()); err != nil {
		b.Fatal(err)
	}
	server, err := mcpserver.New(mcpserver.Options{Catalog: cat})
	if err != nil {
		b.Fatal(err)
	}
	defer server.Close()
	for _, v := range []protocolVersion{legacy, modern} {
		b.Run(string(v), func(b *testing.B) {
			c, end := callerOf(b, server, v)
			defer end()
			walk := loopWalk(true)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := walk.measureWalk(b.Context(), c, 1); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkStdioContinue measures workflow_continue like BenchmarkStdio measures
// workflow_next:
//
//	go test ./workflow -run '^$' -bench StdioContinue -cpuprofile cpu.prof
func BenchmarkStdioContinue(b *testing.B) {
	def, _ := durableProgram(b)
	cat := catalog.New(nil, catalog.Options{})
	if err := cat.Load(b.Context()); err != nil {
		b.Fatal(err)
	}
	server, err := mcpserver.New(mcpserver.Options{Catalog: cat, Runs: newRuns(b, def)})
	if err != nil {
		b.Fatal(err)
	}
	defer server.Close()
	c, end := callerOf(b, server, legacy)
	defer end()
	walk := &durableWalk{}
	if err := walk.startRun(b.Context(), c); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := walk.continueStep(b.Context(), c); err != nil {
			b.Fatal(err)
		}
	}
}

// callerOf returns an initialized client, and a function that ends it.
func callerOf(b *testing.B, server *mcpserver.Server, v protocolVersion) (c *pipeCaller, end func()) {
	b.Helper()
	inRead, inWrite := io.Pipe()
	outRead, outWrite := io.Pipe()
	ended := make(chan error, 1)
	ctx := auth.WithPrincipal(context.WithoutCancel(b.Context()), benchCaller().Principal)
	go func() { ended <- transport.ServeStdio(ctx, server.MCP(), nil, inRead, outWrite) }()
	c = &pipeCaller{in: inWrite, out: bufio.NewReaderSize(outRead, 1<<20), version: v}
	if v == legacy {
		if _, _, err := c.callTool(b.Context(), "initialize", initializeParams()); err != nil {
			b.Fatal(err)
		}
	}
	return c, func() {
		_ = inWrite.Close()
		if err := <-ended; err != nil {
			b.Error(err)
		}
	}
}

// pipeCaller is a client in the same process.
type pipeCaller struct {
	in      io.Writer
	out     *bufio.Reader
	version protocolVersion
	lastID  int
}

func (c *pipeCaller) callTool(_ context.Context, method string, params map[string]any) (json.RawMessage, time.Duration, error) {
	c.lastID++
	line, err := newRequest(c.version, c.lastID, method, params)
	if err != nil {
		return nil, 0, err
	}
	began := time.Now()
	if _, err := c.in.Write(append(line, '\n')); err != nil {
		return nil, 0, fmt.Errorf("%s: %w", method, err)
	}
	for {
		answer, err := c.out.ReadBytes('\n')
		if err != nil {
			return nil, 0, fmt.Errorf("%s: %w", method, err)
		}
		if result, ok, err := readAnswer(answer, c.lastID); ok || err != nil {
			return result, time.Since(began), err
		}
	}
}
