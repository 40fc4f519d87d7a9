package mcp_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	"github.com/guideway-dev/guideway/internal/machine/driver"
	machineengine "github.com/guideway-dev/guideway/internal/machine/engine"
	mcpserver "github.com/guideway-dev/guideway/internal/mcp"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// connectAs connects a client of a principal with an access token.
func connectAs(t *testing.T, r *testServer, p guideway.Principal, opts *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	ctx := auth.WithTokenLease(auth.WithPrincipal(context.Background(), p), &auth.TokenLease{ID: "oauth editor", Name: "editor", Allow: auth.Allow{All: true}})
	near, far := mcp.NewInMemoryTransports()
	ss, err := r.server.MCP().Connect(ctx, far, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ss.Wait() })
	cs, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, opts).Connect(t.Context(), near, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cs.Close() })
	return cs
}

// annsMachines is a service with one run, which belongs to ann. changed counts the changes of
// others.
type annsMachines struct {
	mcpserver.Machines
	changed int
}

func (m *annsMachines) status(c run.Caller, id string) (*driver.Status, error) {
	if c.User != "ann" || id != "m_ann" {
		return nil, guideway.Errorf(guideway.CodeNotFound, "there is no run %q", id)
	}
	return &driver.Status{RunID: id, Status: machineengine.StatusWaiting, Machine: marker}, nil
}

func (m *annsMachines) Start(context.Context, run.Caller, driver.StartRequest) (*driver.Status, error) {
	return nil, guideway.Errorf(guideway.CodeNotFound, "there is no such machine")
}

func (m *annsMachines) Status(_ context.Context, c run.Caller, id string) (*driver.Status, error) {
	return m.status(c, id)
}

func (m *annsMachines) Wait(_ context.Context, c run.Caller, id string, _ time.Duration) (*driver.Status, error) {
	return m.status(c, id)
}

func (m *annsMachines) Input(_ context.Context, c run.Caller, id string, _ driver.InputAnswer) (*driver.Status, error) {
	if c.User == "ann" { // the caller that the tool passes on decides
		m.changed++
	}
	return m.status(c, id)
}

func (m *annsMachines) Cancel(_ context.Context, c run.Caller, id, _ string) (*driver.Status, error) {
	if c.User == "ann" { // the caller that the tool passes on decides
		m.changed++
	}
	return m.status(c, id)
}

func (m *annsMachines) Decide(_ context.Context, c run.Caller, id string, _ driver.OutcomeAnswer) (*driver.Status, error) {
	if c.User == "ann" { // the caller that the tool passes on decides
		m.changed++
	}
	return m.status(c, id)
}

// marker is in the contents that belong to ann.
const marker = "ANNS-SECRET"

// No tool and no resource shows or changes an object of another user. A tool or a resource
// template without a row fails.
func TestNoUserSeesAnothersByTools(t *testing.T) {
	t.Parallel()
	machines := &annsMachines{}
	r := newTestServer(t, func(o *mcpserver.Options) { o.Toolsets, o.Machines = mcpserver.Toolsets(), machines })
	ann := connectClient(t, r.server, "memory", "ann", "", nil)
	started := callTool(t, ann, "workflow_start", map[string]any{"workflowId": "guarded", "goal": marker})
	gate := callTool(t, ann, "workflow_continue", map[string]any{"handle": started["handle"], "output": "PLAN " + marker})
	callTool(t, ann, "workrail_create_session", map[string]any{"workflowId": "guarded", "sessionId": "doc-1", "initialData": map[string]any{"text": marker}})
	saved := callTool(t, ann, "workflow_checkpoint_save", map[string]any{"sessionId": "series-1", "name": marker, "context": map[string]any{"text": marker}})
	id, handle := gate["runId"], gate["handle"]
	read := func() string {
		status := callTool(t, ann, "workflow_status", map[string]any{"runId": id})
		doc := callTool(t, ann, "workrail_read_session", map[string]any{"workflowId": "guarded", "sessionId": "doc-1"})
		list := callTool(t, ann, "workflow_checkpoint_list", map[string]any{"sessionId": "series-1"})
		text, _ := json.Marshal([]any{status["handle"], status["position"], doc, list["checkpoints"]})
		return string(text)
	}
	before := read()
	if strings.Count(before, marker) < 2 {
		t.Fatalf("ann sees %s", before)
	}
	none := map[string]any{}
	rows := map[string][]map[string]any{
		"workflow_continue":           {{"handle": handle, "answer": map[string]any{"optionId": "confirm"}}, {"handle": started["handle"], "output": "PLAN again"}},
		"workflow_status":             {{"handle": handle}, {"runId": id}},
		"workflow_resume":             {{"runId": id}, {"query": marker}, {"query": handle}, none},
		"workflow_fork":               {{"handle": handle}, {"runId": id, "seq": 2}},
		"workflow_abort":              {{"handle": handle}, {"runId": id}},
		"workflow_start":              {{"workflowId": "none"}},
		"workrail_create_session":     {{"workflowId": "guarded", "sessionId": "doc-1", "initialData": map[string]any{"text": "mine"}}},
		"workrail_update_session":     {{"workflowId": "guarded", "sessionId": "doc-1", "updates": map[string]any{"text": "changed"}}},
		"workrail_read_session":       {{"workflowId": "guarded", "sessionId": "doc-1"}},
		"workrail_open_dashboard":     {{"sessionId": "doc-1"}},
		"workflow_checkpoint_save":    {{"sessionId": "series-1", "context": map[string]any{"text": "mine"}}, {"handle": handle}},
		"workflow_checkpoint_load":    {{"checkpointId": saved["checkpointId"]}, {"sessionId": "series-1"}, {"sessionId": id}},
		"workflow_checkpoint_list":    {{"sessionId": "series-1"}, {"query": marker}, none},
		"workflow_context_compress":   {{"handle": handle, "budgetTokens": 500}},
		"workflow_context_prioritize": {{"handle": handle, "budgetTokens": 500}},
		"workflow_mark_critical":      {{"handle": handle, "keys": []any{"x"}}, {"sessionId": "series-1", "keys": []any{"text"}}},
		"machine_list":                {none}, "machine_start": {{"machine": "desk"}},
		"machine_status": {{"runId": "m_ann"}}, "machine_input": {{"runId": "m_ann", "value": "x"}}, "machine_cancel": {{"runId": "m_ann"}},
	}
	// These tools read only definitions, which all users share, or what the call contains.
	for _, name := range strings.Fields(`workflow_list workflow_get workflow_next workflow_validate workflow_validate_json workflow_get_schema
		list_workflows get_workflow get_phase get_checkpoint validate_transition get_activities get_activity match_activity get_rules get_skills list_skills
		get_skill list_guides get_guide list_templates get_template list_resources health_check`) {
		rows[name] = []map[string]any{none}
	}
	bob := connectAs(t, r, guideway.Principal{User: "bob", Client: "editor", Roles: []guideway.Role{guideway.RoleOperator}}, nil)
	tools, err := bob.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range tools.Tools {
		if rows[tool.Name] == nil {
			t.Errorf("the tool %s has no row", tool.Name)
		}
		for _, args := range rows[tool.Name] {
			res, err := bob.CallTool(t.Context(), &mcp.CallToolParams{Name: tool.Name, Arguments: args})
			if err != nil {
				continue
			}
			text, _ := json.Marshal(res)
			given, _ := json.Marshal(args)
			// An answer may repeat the words of a query.
			if shown := string(text); strings.Contains(shown, marker) && !strings.Contains(string(given), marker) || strings.Count(shown, marker) > 2 {
				t.Errorf("%s %s shows %s", tool.Name, given, text)
			}
		}
		delete(rows, tool.Name)
	}
	if len(rows) > 0 {
		t.Errorf("rows without a tool: %v", rows)
	}
	templates, err := bob.ListResourceTemplates(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	resources := map[string]string{
		"guideway://workflows/": "guarded", "guideway://runs/": id.(string), "guideway://sessions/": "0123456789ab/guarded/doc-1",
		"guideway://guides/": "none", "guideway://templates/": "none",
	}
	for _, template := range templates.ResourceTemplates {
		prefix, _, _ := strings.Cut(template.URITemplate, "{")
		if resources[prefix] == "" {
			t.Errorf("the resource template %s has no row", template.URITemplate)
		}
		res, err := bob.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: prefix + resources[prefix]})
		if text, _ := json.Marshal(res); err == nil && strings.Contains(string(text), marker) {
			t.Errorf("%s shows %s", template.URITemplate, text)
		}
	}
	if after := read(); after != before || machines.changed > 0 {
		t.Errorf("bob changed ann's objects:\n%s\n%s", before, after)
	}
}

// A form in a client with a named token or an access token opens no human approval, whatever
// role its person has, also the local user's: it proves only that the client has a token.
func TestFormsOfOthersOpenNoGate(t *testing.T) {
	t.Parallel()
	r := newTestServer(t)
	p := &personClient{answer: r.answerWith("accept", engine.OptionConfirm, "")}
	for _, roles := range [][]guideway.Role{{guideway.RoleOperator}, {guideway.RoleAdmin}, {}, nil} {
		bob := connectAs(t, r, guideway.Principal{User: "bob", Client: "editor", Roles: roles}, p.clientOptions())
		a := runToGate(t, bob)
		for _, args := range []map[string]any{{"handle": a["handle"]}, {"handle": a["handle"], "answer": map[string]any{"optionId": "confirm"}}} {
			res, err := bob.CallTool(t.Context(), &mcp.CallToolParams{Name: "workflow_continue", Arguments: args})
			if err != nil || !res.IsError {
				t.Errorf("%v: %+v, %v", args, res, err)
			}
		}
		maker := connectClient(t, r.server, "memory", "bob", "2026-07-28", manualFormOptions()) // bob is the local user here
		if res, isError := sendFormAnswer(t, bob, a["handle"], r.readForm(t, maker, a["handle"])); !isError || res["rule"] != "form-invalid" {
			t.Errorf("with the roles %v, the form of another client returns %v", roles, res)
		}
		if a := callTool(t, bob, "workflow_status", map[string]any{"handle": a["handle"]}); positionID(a) != "gate draft" {
			t.Errorf("the run is at %v", a)
		}
	}
	if n := p.asked.Load(); n > 0 {
		t.Errorf("the client was asked %d times", n)
	}
}
