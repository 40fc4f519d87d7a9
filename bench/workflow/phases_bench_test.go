package workflow

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	mcpserver "github.com/guideway-dev/guideway/internal/mcp"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/workflow"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// BenchmarkPhaseWalkBytes walks a phase workflow of the corpus to its end with the runs
// tools and reports the bytes that an agent reads, each answer once. It compares them with
// the bytes of get_workflow and of get_phase for each phase in the text form of the
// dialect's original system.
func BenchmarkPhaseWalkBytes(b *testing.B) {
	dir := filepath.Join("..", "..", "..", "shared", "corpus", "phases")
	text, err := os.ReadFile(filepath.Join(dir, "work-package", "work-package.json"))
	if err != nil {
		b.Skip("the corpus is not available")
	}
	def, found := workflow.Parse("work-package.json", text)
	if def == nil {
		b.Fatal(found)
	}
	client := newReader(b, dir, def)
	client.callAndCount(b, "get_workflow", map[string]any{"workflow_id": def.ID})
	for i := range def.Phases.Phases {
		client.callAndCount(b, "get_phase", map[string]any{"workflow_id": def.ID, "phase_id": def.Phases.Phases[i].ID})
	}
	reference := client.read
	var moves int
	for b.Loop() {
		client.read, moves = 0, 0
		a := client.callRun(b, "workflow_start", map[string]any{"workflowId": def.ID})
		for ; a.Position.Kind != engine.PositionEnd; moves++ {
			a = client.callRun(b, "workflow_continue", answerPosition(a))
		}
	}
	b.ReportMetric(float64(client.read), "bytes/walk")
	b.ReportMetric(float64(moves), "moves/walk")
	b.ReportMetric(float64(reference), "bytes/reference")
	b.ReportMetric(float64(client.read)/float64(reference), "of-the-reference")
	b.ReportMetric(0, "ns/op")
}

// reader is a client that counts the text of its answers.
type reader struct {
	session *mcp.ClientSession
	read    int
}

// newReader connects a client to a server with the definitions of a directory and runs of
// one of them.
func newReader(b *testing.B, dir string, def *workflow.Definition) *reader {
	b.Helper()
	cat := catalog.New(catalog.Standard(catalog.Layout{Custom: []string{dir}}), catalog.Options{})
	if err := cat.Open(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(cat.Close)
	server, err := mcpserver.New(mcpserver.Options{
		Catalog: cat, Runs: newRuns(b, def), Toolsets: []string{mcpserver.ToolsetRuns, mcpserver.ToolsetPhases},
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(server.Close)
	near, far := mcp.NewInMemoryTransports()
	if _, err := server.MCP().Connect(auth.WithPrincipal(b.Context(), benchCaller().Principal), far, nil); err != nil {
		b.Fatal(err)
	}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, nil).Connect(b.Context(), near, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = session.Close() })
	return &reader{session: session}
}

// callAndCount calls a tool and counts the text of its answer.
func (r *reader) callAndCount(b *testing.B, name string, args map[string]any) (structured any) {
	b.Helper()
	res, err := r.session.CallTool(b.Context(), &mcp.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range res.Content {
		text := c.(*mcp.TextContent).Text
		if r.read += len(text); res.IsError {
			b.Fatal(text)
		}
	}
	return res.StructuredContent
}

// callRun calls a tool that returns the position of a run.
func (r *reader) callRun(b *testing.B, name string, args map[string]any) *run.Answer {
	b.Helper()
	var a run.Answer
	structured, err := json.Marshal(r.callAndCount(b, name, args))
	if err != nil {
		b.Fatal(err)
	}
	if err := json.Unmarshal(structured, &a); err != nil {
		b.Fatal(err)
	}
	return &a
}

// answerPosition returns the first valid answer to a position.
func answerPosition(a *run.Answer) map[string]any {
	args := map[string]any{"handle": a.Handle}
	switch pos := a.Position; pos.Kind {
	case engine.PositionStep:
		args["output"], args["notes"] = "done", "checked"
	case engine.PositionGate:
		args["answer"] = map[string]any{"optionId": pos.Options[0].ID}
	case engine.PositionContext:
		vars := map[string]any{}
		for _, n := range pos.Needs {
			if len(n.Allowed) == 0 && len(n.Tests) == 0 { // the variable is the list of a loop
				vars["plan"] = map[string]any{"tasks": []any{"one", "two"}}
				continue
			}
			vars[n.Variable] = true
		}
		args["context"] = vars
	}
	return args
}
