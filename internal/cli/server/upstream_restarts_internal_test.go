package server

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway/internal/config"
)

// TestRestartRequests checks that a server finds each request once, that a missing directory
// is no error, and that a directory that cannot be read is reported once.
func TestRestartRequests(t *testing.T) {
	t.Parallel()
	cfg := &config.Config{DataDir: t.TempDir()}
	dir := restartsDir(cfg)
	var log bytes.Buffer
	seen, logger := restartRequests{contents: map[string]string{}}, slog.New(slog.NewTextHandler(&log, nil))
	wantNew := func(want ...string) {
		t.Helper()
		if got := seen.readNew(dir, logger); !slices.Equal(got, want) {
			t.Errorf("the new requests are %q, want %q", got, want)
		}
	}
	wantNew()
	if log.Len() > 0 {
		t.Errorf("a missing directory is reported: %s", &log)
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	wantNew()
	wantNew()
	if strings.Count(log.String(), "level=WARN") != 1 {
		t.Errorf("a file in place of the directory is reported as %q", &log)
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := RequestRestart(cfg, "git"); err != nil {
			t.Fatal(err)
		}
		wantNew("git")
		wantNew()
	}
}
