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

// contract is the OpenAPI document, and holds answers against it. Objects of
// ours may have no members that it does not name: a member that is added to an
// answer must be added to the document.
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
	c.paths = object(document, "paths")
	return c
}

// closeObjects takes members that are not named for errors.
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

// route finds the path of the document that a path is of; one with more literal
// parts is nearer.
func (c *contract) route(path string) (string, bool) {
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

// schema compiles the schema at a place of the document.
func (c *contract) schema(t *testing.T, place ...string) *jsonschema.Schema {
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

// component gives a named schema.
func (c *contract) component(t *testing.T, name string) *jsonschema.Schema {
	t.Helper()
	return c.schema(t, "components", "schemas", name)
}

// object walks to a member.
func object(value any, path ...string) map[string]any {
	for _, name := range path {
		m, _ := value.(map[string]any)
		value = m[name]
	}
	m, _ := value.(map[string]any)
	return m
}

// check holds an answer against the document, and the request too if it was
// taken. What has no place in the document must be a problem: an unknown path, a
// wrong method.
func (c *contract) check(t *testing.T, r *http.Request, sent string, resp *http.Response, got []byte) {
	t.Helper()
	template, known := c.route(r.URL.EscapedPath())
	method := strings.ToLower(r.Method)
	operation := object(c.paths[template], method)
	if r.Method == http.MethodHead || r.Method == http.MethodOptions || !strings.HasPrefix(r.URL.Path, "/api") || r.URL.Path == "/api/docs" {
		return
	}
	if !known || operation == nil {
		if resp.StatusCode < 400 {
			t.Errorf("%s %s answers %d and is not in the document", r.Method, r.URL.Path, resp.StatusCode)
		}
		c.valid(t, c.component(t, "Problem"), got, r.Method+" "+r.URL.Path)
		return
	}
	status := strconv.Itoa(resp.StatusCode)
	answers := object(operation, "responses", status)
	if answers == nil && (resp.StatusCode == http.StatusForbidden || resp.StatusCode == http.StatusNotFound) {
		// The guard's, and that of a page of another origin, on every path; and
		// that of a part that this server does not have.
		c.valid(t, c.component(t, "Problem"), got, template)
		return
	}
	if answers == nil {
		t.Errorf("%s %s answers %s, which is not in the document: %s", r.Method, template, status, got)
		return
	}
	place := []string{"paths", template, method, "responses", status}
	if ref, ok := answers["$ref"].(string); ok {
		place = strings.Split(strings.TrimPrefix(ref, "#/"), "/")
	}
	c.valid(t, c.schema(t, append(place, "content", "application/json", "schema")...), got, r.Method+" "+template+" "+status)
	if sent != "" && resp.StatusCode < 300 {
		c.valid(t, c.schema(t, "paths", template, method, "requestBody", "content", "application/json", "schema"), []byte(sent), "the body of "+template)
	}
	if got := resp.Header.Get("Content-Type"); got != "application/json" {
		t.Errorf("%s %s: Content-Type %q", r.Method, template, got)
	}
}

func (c *contract) valid(t *testing.T, schema *jsonschema.Schema, text []byte, what string) {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err == nil {
		err = schema.Validate(value)
	}
	if err != nil {
		t.Errorf("%s is not as the document says: %v\n%s", what, err, text)
	}
}

// The checker itself sees what is wrong; else it would hold nothing.
func TestContractSeesDrift(t *testing.T) {
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
		if c.component(t, "Problem").Validate(value) == nil {
			t.Errorf("%s was taken for a problem", text)
		}
	}
}

// Every schema of the document compiles, and every reference leads somewhere.
func TestContractCompiles(t *testing.T) {
	t.Parallel()
	c := newContract(t, newHandler(t, nil))
	for name := range object(c.document, "components", "schemas") {
		c.component(t, name)
	}
	used := map[string]bool{}
	collectRefs(c.document, used)
	for ref := range used {
		if !strings.HasPrefix(ref, "#/components/") || object(c.document, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...) == nil {
			t.Errorf("%s leads nowhere", ref)
		}
	}
	for _, kind := range []string{"schemas", "responses", "parameters"} {
		for name := range object(c.document, "components", kind) {
			if !used["#/components/"+kind+"/"+name] {
				t.Errorf("nothing uses %s %s", kind, name)
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
