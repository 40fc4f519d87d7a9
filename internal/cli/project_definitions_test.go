package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/guideway-dev/guideway/internal/cli/app"
)

// The definitions of a project that is named by a client are not trusted, even if those of
// the working directory are; a change in the project is noticed, and a directory that does
// not exist has the definitions of the server.
func TestProjectDefinitions(t *testing.T) {
	t.Parallel()
	host, _ := newTerminal(t, map[string]string{"GUIDEWAY_SOURCE_TRUST": "project-guideway=trusted"})
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	host.Now = func() time.Time { return now }
	a := &app.App{Host: &host, Flags: &app.SettingFlags{}}
	cfg, err := a.Load()
	if err != nil {
		t.Fatal(err)
	}
	own, err := a.OpenCatalog(t.Context(), cfg, false)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	definitions := a.NewProjectDefinitions(cfg, own)
	levelOf := func(snap *catalog.Snapshot) catalog.Level {
		for _, source := range snap.Sources() {
			if source.Name == "project-guideway" {
				return source.Level
			}
		}
		return ""
	}
	snap, _, err := definitions.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := levelOf(snap), catalog.LevelReview; got != want {
		t.Errorf("the level of the named project is %q, want %q", got, want)
	}
	if got, want := levelOf(own.Snapshot()), catalog.LevelTrusted; got != want {
		t.Errorf("the level of the working directory is %q, want %q", got, want)
	}
	writeFile(t, filepath.Join(dir, ".guideway", "workflows", "mine.json"),
		`{"id":"mine","name":"Mine","description":"Mine","version":"1.0.0","steps":[{"id":"one","title":"One","prompt":"Do it."}]}`)
	now = now.Add(time.Minute)
	snap, startable, err := definitions.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := snap.Get("mine"); err != nil {
		t.Errorf("the new workflow is unknown: %v", err)
	}
	if _, err := startable.Startable(t.Context(), "mine"); err != nil {
		t.Errorf("the new workflow cannot be started: %v", err)
	}
	missing, _, err := definitions.Open(t.Context(), filepath.Join(dir, "missing"))
	if err != nil || missing != own.Snapshot() {
		t.Errorf("a missing directory has other definitions: %v", err)
	}
}

// A directory of another user is refused.
func TestProjectOfAnotherUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can give files to another user")
	}
	host, _ := newTerminal(t, nil)
	a := &app.App{Host: &host, Flags: &app.SettingFlags{}}
	cfg, err := a.Load()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Chown(dir, 12345, 12345); err != nil {
		t.Fatal(err)
	}
	_, _, err = a.NewProjectDefinitions(cfg, nil).Open(t.Context(), dir)
	if guideway.ErrorCode(err) != guideway.CodeForbidden || !strings.Contains(err.Error(), dir) {
		t.Errorf("the error is %v", err)
	}
}
