package internal_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/guideway-dev/guideway"

// layer is one tier of the dependency rule: its parts, by the path of their
// directory. A part is a directory with everything below it.
type layer struct {
	name  string
	parts []string
}

// layers is the dependency rule, from the bottom up. A part imports only parts of lower
// layers, never another part of its own layer: two parts of a layer meet at interfaces that
// the consumer declares. To add a part, put its directory into a layer; the test fails for
// a directory in no layer. Parts may be listed before they are written. The linter's
// configuration (.golangci.yml, depguard) has a coarser form of the rule, so that an editor
// shows violations immediately.
func layers() []layer {
	return []layer{
		// The types that all packages share. They import only the standard library.
		{"root", []string{"."}},
		// The platform does not import the product. internal/testutil is only for tests.
		{"platform", []string{"internal/platform", "internal/testutil"}},
		// Leaves do not import each other, except as listed below. The bundled definitions
		// are data.
		{"leaves", []string{
			"internal/audit", "internal/config", "internal/contexts/blob", "internal/contexts/compress", "internal/gateway/jsonrpc",
			"internal/hooks/approval", "internal/hooks/sandbox", "internal/hooks/state", "internal/httpapi/auth", "internal/install", "internal/machine/llm",
			"internal/migrate", "internal/run/project", "internal/telemetry", "internal/workflow/criteria", "internal/workflow/expr",
			"workflows",
		}},
		// Definitions are parsed and checked documents.
		{"definitions", []string{"internal/evidence", "internal/evidence/attest", "internal/evidence/checksfile", "internal/evidence/policy", "internal/hooks/definition", "internal/machine/definition", "internal/workflow"}},
		// Engines decide about runs of definitions, without a clock or I/O.
		{"engines", []string{
			"internal/catalog/graph", "internal/catalog/library", "internal/engine", "internal/hooks/engine", "internal/hooks/runner",
			"internal/machine/engine", "validate",
		}},
		// Services have state: definitions, runs, connections to other servers.
		{"services", []string{
			"internal/catalog", "internal/clienthook", "internal/cluster", "internal/contexts", "internal/contexts/checkpoint", "internal/evidence/execute", "internal/gateway", "internal/gateway/requestlog",
			"internal/gateway/upstream", "internal/hooks/admin", "internal/machine/crashtest", "internal/machine/driver", "internal/notice", "internal/run",
			"internal/session", "internal/store",
		}},
		// Surfaces serve clients with a protocol.
		{"surfaces", []string{"internal/httpapi", "internal/mcp", "ui"}},
		// The command line connects all packages.
		{"cli", []string{"internal/cli"}},
		// Programs: no package imports them.
		{"programs", []string{"cmd", "conformance", "deploy", "release"}},
	}
}

// exceptions are the imports between parts of one layer, each with its reason.
func exceptions() map[string][]string {
	return map[string][]string{
		// A rule on an output may have a condition.
		"internal/workflow/criteria": {"internal/workflow/expr"},
		// The parsers of all dialects use the packages doc and shape; the package workflow
		// parses a document of any dialect.
		"internal/workflow":           {"internal/hooks/definition", "internal/machine/definition"},
		"internal/hooks/definition":   {"internal/workflow"},
		"internal/machine/definition": {"internal/workflow"},
		// An attestation and the checks file use the types of package evidence, and the parser
		// that reports duplicate members.
		"internal/evidence/attest":     {"internal/evidence", "internal/workflow"},
		"internal/evidence/checksfile": {"internal/evidence", "internal/workflow"},
		"internal/evidence/policy":     {"internal/workflow"},
		// The runner calls the sandbox for the engine.
		"internal/hooks/runner": {"internal/hooks/engine"},
		// The gateway offers many upstreams as one surface, and records their requests.
		"internal/gateway": {"internal/gateway/upstream"},
		// The hook graph service writes the files that the catalog reads.
		"internal/hooks/admin": {"internal/catalog"},
		// The service connects runs with the checkpoints of their contexts.
		"internal/contexts": {"internal/contexts/checkpoint", "internal/run"},
		// A store implements the interfaces that runs, session documents and
		// checkpoints declare.
		"internal/store": {"internal/cluster", "internal/contexts/checkpoint", "internal/run", "internal/session"},
		// The events of machine runs are stored in the run store, with the same kind of
		// chain.
		"internal/machine/driver": {"internal/cluster", "internal/run"},
		"internal/cluster":        {"internal/run"},
		"internal/notice":         {"internal/run"},
	}
}

// restricted maps a module to the only parts that may import it.
func restricted() map[string][]string {
	return map[string][]string{
		// Only the packages that speak MCP use the types of its SDK.
		"github.com/modelcontextprotocol/go-sdk": {
			"internal/mcp", "internal/gateway", "conformance",
		},
		// Only the stores and the request log use SQL.
		"database/sql":                          {"internal/store", "internal/gateway/requestlog"},
		"modernc.org/sqlite":                    {"internal/store", "internal/gateway/requestlog"},
		"github.com/jackc/pgx":                  {"internal/store", "internal/testutil/crash"}, // the package crash creates empty schemas
		"github.com/riverqueue/river":           {"internal/store/postgres"},
		"modernc.org/libquickjs":                {"internal/hooks/sandbox/quickjs"}, // runs untrusted code
		"github.com/elastic/go-seccomp-bpf":     {"internal/hooks/sandbox/worker"},
		"github.com/go-sourcemap":               {"internal/hooks/sandbox/worker"},
		"github.com/spf13/cobra":                {"internal/cli"},
		"github.com/dlclark":                    {"internal/workflow/expr/pattern"}, // the package sets the library's clock once
		"github.com/fsnotify":                   {"internal/catalog"},
		"github.com/secure-systems-lab":         {"internal/evidence/attest"},
		"github.com/segmentio/encoding":         {"internal/platform/jsontext"}, // the MCP SDK imports it, too
		"github.com/tailscale/hujson":           {"internal/install"},           // provides positions in JSON with comments; edits do not use it, because it formats whole files
		"github.com/theory/jsonpath":            {"internal/session"},
		"github.com/tiktoken-go":                {"internal/contexts/compress"}, // contains 12 MB of vocabularies
		"github.com/kljensen/snowball":          {"internal/contexts/compress", "internal/platform/words"},
		"github.com/zalando":                    {"internal/contexts/blob/seal", "internal/gateway/upstream"},
		"github.com/klauspost/compress":         {"internal/catalog", "internal/contexts/checkpoint"},
		"github.com/santhosh-tekuri/jsonschema": {"internal/workflow", "internal/workflow/criteria", "internal/config"},
	}
}

// pure returns the parts that must have no side effects, and the imports that are forbidden
// in them.
func pure() (parts, imports []string) {
	parts = []string{
		"internal/workflow/expr", "internal/workflow/criteria", "internal/catalog/graph", "internal/engine", "internal/hooks/engine",
		"internal/catalog/library", "internal/machine/engine", "internal/contexts/compress", ".",
	}
	imports = []string{
		"os", "os/exec", "net", "net/http", "io/ioutil", "log", "log/slog", "database/sql", "math/rand", "math/rand/v2",
	}
	return parts, imports
}

// file is a Go file of the product, with its imports.
type file struct {
	path, dir string
	imports   []string
}

// productFiles reads the imports of every Go file except tests, regardless of build
// constraints.
func productFiles(t *testing.T) []file {
	t.Helper()
	root := ".."
	var files []file
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := entry.Name()
		if entry.IsDir() {
			if name == filepath.Join(root, "bench") { // bench is a separate module
				return filepath.SkipDir
			}
			if base == "node_modules" || base == "testdata" || (name != root && strings.HasPrefix(base, ".")) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(base, ".go") || strings.HasSuffix(base, "_test.go") {
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		f := file{path: filepath.ToSlash(rel), dir: path.Dir(filepath.ToSlash(rel))}
		for _, spec := range parsed.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			f.imports = append(f.imports, imported)
		}
		files = append(files, f)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 20 {
		t.Fatalf("only %d files were found", len(files))
	}
	return files
}

// below reports whether a path is a part or inside it.
func below(name, part string) bool {
	return name == part || (part != "." && strings.HasPrefix(name, part+"/"))
}

// place returns the part and the layer of a directory. The layer is -1 if the directory is
// in no layer.
func place(dir string) (part string, height int) {
	height = -1
	for i, l := range layers() {
		for _, p := range l.parts {
			if below(dir, p) && (height < 0 || below(p, part)) {
				part, height = p, i // the most specific part
			}
		}
	}
	return part, height
}

func TestImportsGoDownwards(t *testing.T) {
	t.Parallel()
	for _, f := range productFiles(t) {
		from, height := place(f.dir)
		if height < 0 {
			t.Errorf("%s is in no layer: add its directory to the table in this test", f.path)
			continue
		}
		for _, imported := range f.imports {
			if imported != module && !strings.HasPrefix(imported, module+"/") {
				continue
			}
			dir := strings.TrimPrefix(strings.TrimPrefix(imported, module), "/")
			if dir == "" {
				dir = "."
			}
			to, target := place(dir)
			if target < height || to == from || slices.Contains(exceptions()[from], to) {
				continue
			}
			t.Errorf("%s imports %s: %s is in the layer %q, which is not below %q",
				f.path, dir, to, layers()[target].name, layers()[height].name)
		}
	}
}

func TestModulesStayWhereTheyBelong(t *testing.T) {
	t.Parallel()
	pureParts, outside := pure()
	isPure := func(dir string) bool {
		part, _ := place(dir)
		return slices.Contains(pureParts, part)
	}
	for _, f := range productFiles(t) {
		for _, imported := range f.imports {
			for restrictedModule, parts := range restricted() {
				if !below(imported, restrictedModule) {
					continue
				}
				if !slices.ContainsFunc(parts, func(part string) bool { return below(f.dir, part) }) {
					t.Errorf("%s imports %s, which only %v may import", f.path, imported, parts)
				}
			}
			if isPure(f.dir) && slices.Contains(outside, imported) {
				t.Errorf("%s imports %s, but its part is pure", f.path, imported)
			}
			if f.dir == "." && strings.Contains(strings.Split(imported, "/")[0], ".") {
				t.Errorf("%s imports %s, but the root package uses the standard library only", f.path, imported)
			}
		}
	}
}
