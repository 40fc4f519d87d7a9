package mcpserver_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/authn"
	"github.com/guideway-dev/guideway/internal/mcpserver"
	"github.com/guideway-dev/guideway/internal/mcpserver/transport"
)

// speak sends lines over stdio one after the other, and gives the answers.
func speak(t *testing.T, ctx context.Context, server *mcpserver.Server, past transport.Past, lines ...string) (answers []any) { //nolint:revive // t comes first here
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- transport.StdioPast(ctx, server.MCP(), past, inR, outW) }()
	out := bufio.NewReader(outR)
	for _, line := range lines {
		if _, err := io.WriteString(inW, line+"\n"); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(line, `"id"`) {
			continue
		}
		text, err := out.ReadBytes('\n')
		if err != nil {
			t.Fatal(err)
		}
		var answer any
		if err := json.Unmarshal(text, &answer); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		answers = append(answers, answer)
	}
	_ = inW.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
	return answers
}

// workflow_next answers the same on the way past the SDK: a step, every kind of bad
// call, and to a client whose token does not have its toolset.
func TestNextPastTheSDK(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	if r.server.Direct("workflow_next") == nil {
		t.Fatal("workflow_next has no way past the SDK")
	}
	for _, name := range []string{"workflow_continue", "workflow_start", "workflow_resume", "nothing"} {
		if r.server.Direct(name) != nil {
			t.Errorf("%s has a way past the SDK", name)
		}
	}
	lines := []string{
		`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
	}
	for _, args := range []string{
		`{"workflowId":"guarded","completedSteps":[],"context":{"a":"<b> & é"}}`,
		`{"workflowId":"guarded","completedSteps":["plan"],"context":{}}`,
		`{"workflowId":"guarded"}`, `{"workflowId":"guardde","completedSteps":[]}`, `{"workflowId":3,"completedSteps":{}}`, `{}`,
		`{"workflowId":"guarded","completedSteps":["report"]}`, `{"workflowId":"guarded","completedSteps":[],"more":1}`,
	} {
		lines = append(lines, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"workflow_next","arguments":`+args+`}}`)
	}
	ann := guideway.Principal{User: "ann"}
	for name, allow := range map[string]authn.Allow{"everything": {All: true}, "steps": {Toolsets: []string{"steps"}}, "runs": {Toolsets: []string{"runs"}}} {
		ctx := authn.WithHolder(authn.WithPrincipal(t.Context(), ann), &authn.Holder{ID: "1", Name: "laptop", Allow: allow})
		want := speak(t, ctx, r.server, transport.Past{}, lines...)
		got := speak(t, ctx, r.server, transport.Past{Direct: r.server}, lines...)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: with the SDK and without (-want +got):\n%s", name, diff)
		}
		_, failed := got[1].(map[string]any)["error"]
		if failed != (name == "runs") {
			t.Errorf("%s: %v", name, got[1])
		}
	}
}
