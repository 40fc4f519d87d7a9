package httpapi_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// contract checks answers against the OpenAPI document. An answer must not have members
// that the document does not name.
type contract struct {
	mu       sync.Mutex
	document map[string]any
	paths    map[string]any
	compiler *jsonschema.Compiler
	schemas  map[string]*jsonschema.Schema
}

const contractURL = "https://guideway.example/openapi.json"

func newContract(t *testing.T, handler http.Handler) *contract {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), "GET", "http://localhost/api/openapi.json", nil)
	asAgent(r)
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	document, err := jsonschema.UnmarshalJSON(w.Body)
	if err != nil || w.Code != http.StatusOK {
		t.Fatalf("the OpenAPI document: %d, %v", w.Code, err)
	}
	closeObjects(document)
	c := &contract{compiler: jsonschema.NewCompiler(), schemas: map[string]*jsonschema.Schema{}}
	c.compiler.DefaultDraft(jsonschema.Draft2020)
	c.compiler.AssertFormat()
	if err := c.compiler.AddResource(contractURL, document); err != nil {
		t.Fatal(err)
	}
	c.document = document.(map[string]any)
	c.paths = memberAt(document, "paths")
	return c
}

// closeObjects makes members that the document does not name invalid.
func closeObjects(value any) {
	switch value := value.(type) {
	case []any:
		for _, item := range value {
			closeObjects(item)
		}
	case map[string]any:
		_, named := value["properties"].(map[string]any)
		if _, said := value["additionalProperties"]; value["type"] == "object" && named && !said {
			value["additionalProperties"] = false
		}
		for _, item := range value {
			closeObjects(item)
		}
	}
}

// findRoute returns the path template of the document that matches a path. If several
// match, it returns the one with the most literal parts.
func (c *contract) findRoute(path string) (string, bool) {
	best, literals := "", -1
	for template := range c.paths {
		given, parts := strings.Split(path, "/"), strings.Split(template, "/")
		if len(given) != len(parts) {
			continue
		}
		same := 0
		for i := range parts {
			switch {
			case parts[i] == given[i]:
				same++
			case !strings.HasPrefix(parts[i], "{"):
				same = -len(parts)
			}
		}
		if same > literals {
			best, literals = template, same
		}
	}
	return best, literals >= 0
}

// compileSchema compiles the schema at a path of the document.
func (c *contract) compileSchema(t *testing.T, place ...string) *jsonschema.Schema {
	t.Helper()
	pointer := ""
	for _, part := range place {
		pointer += "/" + strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(part)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.schemas[pointer] == nil {
		compiled, err := c.compiler.Compile(contractURL + "#" + pointer)
		if err != nil {
			t.Fatalf("compile %s: %v", pointer, err)
		}
		c.schemas[pointer] = compiled
	}
	return c.schemas[pointer]
}

// componentSchema returns a named schema.
func (c *contract) componentSchema(t *testing.T, name string) *jsonschema.Schema {
	t.Helper()
	return c.compileSchema(t, "components", "schemas", name)
}

// memberAt returns the object at a path.
func memberAt(value any, path ...string) map[string]any {
	for _, name := range path {
		m, _ := value.(map[string]any)
		value = m[name]
	}
	m, _ := value.(map[string]any)
	return m
}

// checkAnswer checks an answer against the OpenAPI document. It also checks the body of a
// request that was accepted. An unknown path or method must be answered with a Problem.
func (c *contract) checkAnswer(t *testing.T, r *http.Request, sent string, resp *http.Response, got []byte) {
	t.Helper()
	template, known := c.findRoute(r.URL.EscapedPath())
	method := strings.ToLower(r.Method)
	operation := memberAt(c.paths[template], method)
	if r.Method == http.MethodHead || r.Method == http.MethodOptions || !strings.HasPrefix(r.URL.Path, "/api") || r.URL.Path == "/api/docs" {
		return
	}
	if !known || operation == nil {
		if resp.StatusCode < 400 {
			t.Errorf("%s %s returns %d, which is not in the document", r.Method, r.URL.Path, resp.StatusCode)
		}
		c.checkSchema(t, c.componentSchema(t, "Problem"), got, r.Method+" "+r.URL.Path)
		return
	}
	status := strconv.Itoa(resp.StatusCode)
	answers := memberAt(operation, "responses", status)
	if answers == nil && (resp.StatusCode == http.StatusForbidden || resp.StatusCode == http.StatusNotFound) {
		// Every path may answer 403 or 404 with a Problem: the guard refuses the request,
		// or the server lacks the part that serves the path.
		c.checkSchema(t, c.componentSchema(t, "Problem"), got, template)
		return
	}
	if answers == nil {
		t.Errorf("%s %s returns %s, which is not in the document: %s", r.Method, template, status, got)
		return
	}
	place := []string{"paths", template, method, "responses", status}
	if ref, ok := answers["$ref"].(string); ok {
		place = strings.Split(strings.TrimPrefix(ref, "#/"), "/")
	}
	c.checkSchema(t, c.compileSchema(t, append(place, "content", "application/json", "schema")...), got, r.Method+" "+template+" "+status)
	if sent != "" && resp.StatusCode < 300 {
		c.checkSchema(t, c.compileSchema(t, "paths", template, method, "requestBody", "content", "application/json", "schema"), []byte(sent), "the body of "+template)
	}
	if got := resp.Header.Get("Content-Type"); got != "application/json" {
		t.Errorf("%s %s: Content-Type %q", r.Method, template, got)
	}
}

func (c *contract) checkSchema(t *testing.T, schema *jsonschema.Schema, text []byte, what string) {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err == nil {
		err = schema.Validate(value)
	}
	if err != nil {
		t.Errorf("%s does not match the document: %v\n%s", what, err, text)
	}
}

// TestContractDetectsDrift checks that invalid answers do not match the schema Problem.
// Otherwise the other tests would accept wrong answers.
func TestContractDetectsDrift(t *testing.T) {
	t.Parallel()
	c := newContract(t, newHandler(t, nil))
	for _, text := range []string{
		`{}`, `{"success":true,"error":"x","code":"invalid"}`, `{"success":false,"error":"x","code":"odd"}`,
		`{"success":false,"error":"x","code":"invalid","extra":1}`,
	} {
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if c.componentSchema(t, "Problem").Validate(value) == nil {
			t.Errorf("%s was accepted as a Problem", text)
		}
	}
}

// Every schema of the OpenAPI document compiles, every reference resolves, and every
// component is used.
func TestContractCompiles(t *testing.T) {
	t.Parallel()
	c := newContract(t, newHandler(t, nil))
	for name := range memberAt(c.document, "components", "schemas") {
		c.componentSchema(t, name)
	}
	used := map[string]bool{}
	collectRefs(c.document, used)
	for ref := range used {
		if !strings.HasPrefix(ref, "#/components/") || memberAt(c.document, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...) == nil {
			t.Errorf("%s does not resolve", ref)
		}
	}
	for _, kind := range []string{"schemas", "responses", "parameters"} {
		for name := range memberAt(c.document, "components", kind) {
			if !used["#/components/"+kind+"/"+name] {
				t.Errorf("no object uses %s %s", kind, name)
			}
		}
	}
}

func collectRefs(value any, used map[string]bool) {
	switch value := value.(type) {
	case []any:
		for _, item := range value {
			collectRefs(item, used)
		}
	case map[string]any:
		if ref, ok := value["$ref"].(string); ok {
			used[ref] = true
		}
		for _, item := range value {
			collectRefs(item, used)
		}
	}
}
