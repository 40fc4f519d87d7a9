//go:build unix

package clients

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway/internal/install"
)

// docs/clients.md names the version of each client that is tested, in the section of the
// client, the packages are locked at these versions, and the events of the fixtures are
// recorded from them.
func TestVersionsInDocumentation(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/clients.md")
	if err != nil {
		t.Fatal(err)
	}
	var pinned struct{ Dependencies map[string]string }
	readJSON(t, "package.json", &pinned)
	var locked struct {
		Packages map[string]struct{ Version string }
	}
	readJSON(t, "package-lock.json", &locked)
	for _, c := range programs() {
		version := pinned.Dependencies[c.module]
		if got := locked.Packages["node_modules/"+c.module].Version; got != version || version == "" {
			t.Errorf("%s is locked at %q, and package.json has %q", c.module, got, version)
		}
		if recorded, err := os.ReadFile(filepath.Join(fixturesOf(c), "version.txt")); c.tools != nil && string(recorded) != c.module+" "+version+"\n" {
			t.Errorf("the events of %s are of the version %q, and package.json has %s; %s=1 records them: %v", c.name, recorded, version, recordVariable, err)
		}
		known, err := install.Find(c.name)
		if err != nil {
			t.Fatal(err)
		}
		_, section, found := strings.Cut(string(page), "\n## "+known.Title+"\n")
		section, _, _ = strings.Cut(section, "\n## ")
		if !found || !strings.Contains(section, version) {
			t.Errorf("the section %q of docs/clients.md does not name the version %s", known.Title, version)
		}
	}
	if got, want := len(pinned.Dependencies), len(programs()); got != want {
		t.Errorf("package.json has %d clients; %d are tested", got, want)
	}
}

func readJSON(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}
