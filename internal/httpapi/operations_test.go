package httpapi_test

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/guideway-dev/guideway/internal/gateway/requestlog"
	"github.com/guideway-dev/guideway/internal/httpapi"
	"github.com/guideway-dev/guideway/internal/machine/driver"
	machineengine "github.com/guideway-dev/guideway/internal/machine/engine"
	"github.com/guideway-dev/guideway/internal/run"
)

// refusedOperations are the operations that a server without a gateway refuses.
var refusedOperations = map[string]int{
	"restartUpstream": http.StatusConflict, "askUpstream": http.StatusConflict, "loginUpstream": http.StatusConflict, "finishUpstreamLogin": http.StatusNotFound, "approveTools": http.StatusConflict,
}

// operation is an operation of the OpenAPI document.
type operation struct {
	id, method, path string
	described        map[string]any
}

// listOperations returns the operations of the OpenAPI document in the order of their ids.
func (c *contract) listOperations() []operation {
	var list []operation
	for path, methods := range c.paths {
		for method, described := range methods.(map[string]any) {
			o := described.(map[string]any)
			list = append(list, operation{o["operationId"].(string), strings.ToUpper(method), path, o})
		}
	}
	slices.SortFunc(list, func(a, b operation) int { return cmp.Compare(a.id, b.id) })
	return list
}

// resolveRef returns the object that a reference names, or the value itself.
func (c *contract) resolveRef(value any) map[string]any {
	m, _ := value.(map[string]any)
	if ref, ok := m["$ref"].(string); ok {
		return c.resolveRef(memberAt(c.document, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...))
	}
	return m
}

// minimalValue returns a value that matches a schema. An object has the required members
// and those that given contains. The values in given take precedence.
func (c *contract) minimalValue(value any, given map[string]any) any {
	schema := c.resolveRef(value)
	if enum, ok := schema["enum"].([]any); ok {
		return enum[0]
	}
	switch schema["type"] {
	case "object":
		object, properties := map[string]any{}, memberAt(schema, "properties")
		required, _ := schema["required"].([]any)
		for name, property := range properties {
			if v, ok := given[name]; ok {
				object[name] = v
			} else if slices.Contains(required, any(name)) {
				object[name] = c.minimalValue(property, nil)
			}
		}
		return object
	case "array":
		return []any{}
	case "integer", "number":
		return 1
	case "boolean":
		return true
	default:
		return "x"
	}
}

// requestOf returns the target and the body of a minimal request of an operation. It omits
// an optional body without members.
func (c *contract) requestOf(t *testing.T, o operation, given map[string]any) (target, body string) {
	t.Helper()
	target = o.path
	query := url.Values{}
	parameters, _ := o.described["parameters"].([]any)
	for _, parameter := range parameters {
		p := c.resolveRef(parameter)
		name := p["name"].(string)
		value, ok := given[name].(string)
		switch {
		case p["in"] == "path" && !ok:
			t.Fatalf("the fixture has no value for the path parameter %q", name)
		case p["in"] == "path":
			target = strings.ReplaceAll(target, "{"+name+"}", url.PathEscape(value))
		case p["in"] == "query" && (ok || p["required"] == true):
			query.Set(name, cmp.Or(value, "x"))
		}
	}
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	requestBody := memberAt(o.described, "requestBody")
	value, _ := c.minimalValue(memberAt(requestBody, "content", "application/json", "schema"), given).(map[string]any)
	if requestBody["required"] == true || len(value) > 0 {
		text, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		body = string(text)
	}
	return target, body
}

// fixture creates the objects that requests name, such as runs and upstreams.
type fixture struct {
	*rig

	person credential
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	log, err := requestlog.Open(t.Context(), filepath.Join(t.TempDir(), "requests.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	if err := log.Write(t.Context(), requestlog.Batch{Entries: []*requestlog.Entry{recordedEntry(1)}}); err != nil {
		t.Fatal(err)
	}
	s, _, _ := newHooks(t, func(o *httpapi.Options) { o.Requests = &fakeRequests{log} })
	_, person := s.loginBrowser(t, "ann")
	return &fixture{s, person}
}

// valuesOf creates the objects that a request of the operation names and returns the values
// of its parameters and members.
func (f *fixture) valuesOf(t *testing.T, o operation) map[string]any {
	t.Helper()
	own := strings.ToLower(o.id)
	switch strings.Split(o.path, "/")[2] {
	case "workflows", "validate", "try":
		return map[string]any{"id": "flow", "source": "user", "text": flowText, "base": ""}
	case "schemas":
		return map[string]any{"dialect": "steps"}
	case "hooks", "hook-check", "hook-test":
		return f.valuesOfHook(t, o, own)
	case "hook-modules":
		return map[string]any{"id": "mark", "source": "user", "script": "context.variables.a = 1;"}
	case "runs":
		a := f.startAtGate(t, callerAnn(), "plain", "a goal")
		return map[string]any{"id": a.RunID, "workflowId": "plain", "q": "goal", "optionId": a.Position.Options[0].ID}
	case "machines", "machine-runs":
		return f.valuesOfMachine(t, o)
	case "checkpoints":
		var last checkpoint.Record
		for _, text := range []string{`{"a":1}`, `{"a":2}`} {
			saved, err := f.memory.Save(t.Context(), callerAnn().Principal, checkpoint.SaveRequest{Session: own, Context: json.RawMessage(text)})
			if err != nil {
				t.Fatal(err)
			}
			last = saved.Record
		}
		return map[string]any{"id": last.ID}
	case "upstreams":
		config := map[string]any{"command": "/bin/false"}
		if o.id == "addUpstream" {
			return map[string]any{"name": own, "config": config}
		}
		f.wantStatus(t, http.StatusCreated, f.person, "POST", "/api/upstreams", `{"name":"`+own+`","config":{"command":"/bin/true"}}`)
		tools := []any{map[string]any{"tool": "read"}}
		return map[string]any{"name": own, "base": f.upstreamBase(t, own), "config": config, "tool": "read", "tools": tools}
	case "upstream-import":
		return map[string]any{"text": `{"mcpServers":{"time":{"command":"uvx"}}}`}
	case "tokens":
		if o.id == "revokeToken" {
			f.wantStatus(t, http.StatusCreated, f.person, "POST", "/api/tokens", `{"name":"`+own+`"}`)
		}
		return map[string]any{"name": own}
	case "sessions":
		f.createDocument(t, "ann", projectA, "plain", own)
		if o.id == "restoreSession" {
			f.wantStatus(t, http.StatusOK, f.person, "DELETE", "/api/sessions/plain/"+own, "")
		}
		named := []any{map[string]any{"workflowId": "plain", "sessionId": own}}
		return map[string]any{"workflow": "plain", "id": own, "project": projectA, "sessions": named}
	case "calls":
		return map[string]any{"id": f.holdCall(t, "ann", own).ID}
	case "requests":
		return map[string]any{"id": "q_1"}
	}
	return nil
}

func (f *fixture) valuesOfHook(t *testing.T, o operation, own string) map[string]any {
	t.Helper()
	graph := strings.Replace(hookText, `"id":"mine"`, `"id":"`+own+`"`, 1)
	values := map[string]any{"id": own, "source": "user", "base": "", "graph": json.RawMessage(graph), "request": map[string]any{}}
	if o.id == "saveHook" {
		return values
	}
	var saved hookAnswer
	f.wantStatus(t, http.StatusOK, f.person, "PUT", "/api/hooks/"+own, saveHookJSON("user", "", graph)).decodeInto(t, &saved)
	var list struct{ Versions []struct{ ID string } }
	f.wantStatus(t, http.StatusOK, f.person, "GET", "/api/hooks/"+own+"/versions", "").decodeInto(t, &list)
	if o.id == "disableHook" {
		f.wantStatus(t, http.StatusOK, f.person, "POST", "/api/hooks/"+own+"/enable", `{"pin":"`+saved.Hook.Pin+`"}`)
	}
	maps.Copy(values, map[string]any{"base": saved.Base, "pin": saved.Hook.Pin, "version": list.Versions[0].ID})
	return values
}

func (f *fixture) valuesOfMachine(t *testing.T, o operation) map[string]any {
	t.Helper()
	values := map[string]any{"name": "desk", "machine": "desk", "demo": true, "value": "yes", "states": 100}
	if !strings.Contains(o.path, "{id}") {
		return values
	}
	request := driver.StartRequest{Machine: "desk", Inputs: map[string]json.RawMessage{"request": json.RawMessage(`"x"`)}}
	if o.id == "resumeMachine" {
		request.Limits = machineengine.Limits{States: 1}
	}
	st, err := f.machines.Start(t.Context(), run.Caller{Principal: callerAnn().Principal}, request)
	if err != nil {
		t.Fatal(err)
	}
	values["question"] = f.waitForRest(t, st.RunID).Question
	values["id"] = st.RunID
	return values
}

// wantDocumented sends a request and checks that the operation documents the status of the
// answer. The rig checks the body.
func (f *fixture) wantDocumented(t *testing.T, o operation, who credential, target, body string) int {
	t.Helper()
	got := f.sendRequest(t, who, o.method, target, body)
	if memberAt(o.described, "responses", strconv.Itoa(got.StatusCode)) == nil {
		t.Errorf("%s %s returns %d, which is not in the document: %s", o.method, target, got.StatusCode, got.body)
	}
	return got.StatusCode
}

// Every operation of the OpenAPI document answers a minimal request with a status and a
// body that the document describes. TestRoutesMatchTheDocument checks that no other route
// exists.
func TestDocumentedRequests(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, o := range f.contract.listOperations() {
		t.Run(o.id, func(t *testing.T) {
			target, body := f.contract.requestOf(t, o, f.valuesOf(t, o))
			events := []string{"paths", o.path, "get", "responses", "200", "content", "text/event-stream", "schema"}
			if memberAt(f.contract.document, events...) != nil {
				e, err := f.openStream(t, f.person, target).nextEvent()
				if err != nil {
					t.Fatal(err)
				}
				f.contract.checkSchema(t, f.contract.compileSchema(t, events...), []byte(e.text), o.id)
				return
			}
			who := f.person
			if o.id == "logout" {
				_, who = f.loginBrowser(t, "ann")
			}
			status := f.wantDocumented(t, o, who, target, body)
			if want := refusedOperations[o.id]; status >= 300 && status != want || status < 300 && want != 0 {
				t.Errorf("%s %s %s: %d", o.method, target, body, status)
			}
		})
	}
}

// A request without a credential, with an agent's token, with unknown names or without a
// body is answered as the OpenAPI document describes.
func TestDocumentedRefusals(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, o := range f.contract.listOperations() {
		t.Run(o.id, func(t *testing.T) {
			unknown := map[string]any{"source": "user", "base": "x", "project": projectA}
			for part := range strings.SplitSeq(o.path, "/") {
				if name, ok := strings.CutPrefix(part, "{"); ok {
					unknown[strings.TrimSuffix(name, "}")] = "none"
				}
			}
			target, body := f.contract.requestOf(t, o, unknown)
			security, declared := o.described["security"].([]any)
			if open := declared && len(security) == 0; !open {
				if status := f.wantDocumented(t, o, withoutCredential, target, body); status != http.StatusUnauthorized {
					t.Errorf("without a credential: %d", status)
				}
			}
			if len(security) == 1 { // Only a browser may make the request.
				if status := f.wantDocumented(t, o, asAgent, target, body); status != http.StatusForbidden {
					t.Errorf("with an agent's token the status is %d", status)
				}
			}
			if !strings.Contains(o.path, "{") && o.method == "GET" || o.id == "logout" {
				return
			}
			f.wantDocumented(t, o, f.person, target, body)
			takes := memberAt(o.described, "requestBody")
			if status := f.wantDocumented(t, o, f.person, target, ""); takes != nil && takes["required"] != true && status == http.StatusBadRequest {
				t.Error("the body is not optional")
			}
		})
	}
}
