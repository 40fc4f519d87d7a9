package httpapi

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/guideway-dev/guideway/internal/contexts"
	gatewayadmin "github.com/guideway-dev/guideway/internal/gateway/admin"
	"github.com/guideway-dev/guideway/internal/gateway/holds"
	hookadmin "github.com/guideway-dev/guideway/internal/hooks/admin"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/store/sqlite"
)

// newFullAPI returns an API with all parts. No part may be called.
func newFullAPI() *api {
	return &api{Options: Options{
		Browsers: &auth.BrowserSessions{}, Catalog: &catalog.Catalog{}, Runs: &run.Service{},
		Sessions: &sqlite.Store{}, Feed: &sqlite.Store{}, Memory: &contexts.Service{}, Hooks: &hookadmin.Service{}, Requests: struct{ Requests }{}, Calls: &holds.Store{},
		Upstreams: &gatewayadmin.Service{}, Machines: struct{ Machines }{}, Tokens: &auth.Tokens{}, Audit: struct{ AuditLog }{},
		CurrentProject: func(context.Context) run.Project { return run.Project{} },
	}}
}

// The route table and the OpenAPI document must have the same routes with the same path
// parameters, and no operation of the document may accept a browser without the page's key.
func TestRoutesMatchTheDocument(t *testing.T) {
	t.Parallel()
	text, err := openAPIJSON()
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Security []map[string]any
		Paths    map[string]map[string]struct {
			OperationID string
			Security    []map[string]any
		}
	}
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	described, ids := map[string]bool{}, map[string]string{}
	checkKey := func(name string, security []map[string]any) {
		for _, way := range security {
			if (way["browser"] == nil) != (way["key"] == nil) {
				t.Errorf("%s accepts %v", name, way)
			}
		}
	}
	checkKey("the document", document.Security)
	for path, operations := range document.Paths {
		for method, o := range operations {
			name := strings.ToUpper(method) + " " + path
			described[name] = true
			if ids[o.OperationID] != "" || o.OperationID == "" {
				t.Errorf("%s and %s have the operationId %q", name, ids[o.OperationID], o.OperationID)
			}
			ids[o.OperationID] = name
			checkKey(name, o.Security)
		}
	}
	served := map[string]bool{}
	for _, r := range newFullAPI().routeTable() {
		served[r.method+" "+r.path] = true
	}
	if diff := cmp.Diff(described, served); diff != "" {
		t.Errorf("routes of the document (-) and of the table (+):\n%s", diff)
	}
	if len(served) < 25 {
		t.Errorf("only %d routes", len(served))
	}
}

// TestDescriptionsAreWhole checks that no description of the document ends at a comma: in a
// flow mapping without quotes, YAML reads the rest as a member without a value.
func TestDescriptionsAreWhole(t *testing.T) {
	t.Parallel()
	text, err := openAPIJSON()
	if err != nil {
		t.Fatal(err)
	}
	var document any
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	var visit func(at string, value any)
	visit = func(at string, value any) {
		switch value := value.(type) {
		case map[string]any:
			for name, member := range value {
				if member == nil {
					t.Errorf("%s: the member %q has no value; put the description in quotes", at, name)
				}
				visit(at+"/"+name, member)
			}
		case []any:
			for _, item := range value {
				visit(at, item)
			}
		}
	}
	visit("", document)
}

// Only the routes of the status are open. A GET requires a right to read or to manage, and every
// other method except logout requires more than the right to read.
func TestRoutesAreGuarded(t *testing.T) {
	t.Parallel()
	for _, r := range newFullAPI().routeTable() {
		if (r.right == open) != (r.path == "/api/health" || r.path == "/api/ready") {
			t.Errorf("%s %s has the right %q", r.method, r.path, r.right)
		}
		if r.method == "GET" && r.right != auth.RightRead && r.right != auth.RightContents && r.right != auth.RightManage && r.right != auth.RightTokens && r.right != open {
			t.Errorf("GET %s requires the right %q", r.path, r.right)
		}
		if r.method != "GET" && r.right == auth.RightRead && r.path != "/api/logout" {
			t.Errorf("%s %s requires only the right to read", r.method, r.path)
		}
	}
}
