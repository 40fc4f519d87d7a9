package catalog_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/guideway-dev/guideway/internal/workflow"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// deadline is the time limit of a test for an expected event.
const deadline = 10 * time.Second

// parseTest is a small dialect for tests: a JSON object with id and version.
func parseTest(file string, data []byte) (*workflow.Definition, []guideway.Diagnostic) {
	var document struct{ ID, Version string }
	if err := json.Unmarshal(data, &document); err != nil || document.ID == "" {
		return nil, []guideway.Diagnostic{{
			Severity: guideway.SeverityError, Code: "test-broken", File: file, Line: 1, Column: 1,
			Message: "broken", Fix: "mend it",
		}}
	}
	return &workflow.Definition{
		Dialect: guideway.DialectSteps, ID: document.ID, Version: document.Version,
		Hash: document.ID + "@" + document.Version, File: file,
	}, nil
}

func definitionText(id, version string) string {
	return fmt.Sprintf(`{"id":%q,"version":%q}`, id, version)
}

// fakeSource is a source in memory.
type fakeSource struct {
	info catalog.SourceInfo

	mu    sync.Mutex
	files map[string]string // A file with the text "!" cannot be opened.
	found []guideway.Diagnostic
	err   error
	stamp bool // use the text as stamp
	sums  bool // set the hash of the text
	opens int
	// forged contains the texts that Open returns in place of the listed ones.
	forged map[string]string
}

func newFake(name string, rank int, files map[string]string) *fakeSource {
	return &fakeSource{info: catalog.SourceInfo{Name: name, Kind: "fake", Location: "/" + name, Rank: rank}, files: files}
}

func (f *fakeSource) Info() catalog.SourceInfo { return f.info }

func (f *fakeSource) Documents(context.Context) ([]catalog.Document, []guideway.Diagnostic, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var documents []catalog.Document
	for name, content := range f.files {
		d := catalog.Document{Name: name, Path: f.info.Location + "/" + name, Size: int64(len(content))}
		if f.stamp {
			d.Stamp = content
		}
		if f.sums && content != "!" {
			sum := sha256.Sum256([]byte(content))
			d.Sum = &sum
		}
		d.Open = func(context.Context) (io.ReadCloser, error) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.opens++
			if other, is := f.forged[name]; is {
				return io.NopCloser(strings.NewReader(other)), nil
			}
			if content == "!" {
				return nil, errors.New("disk on fire")
			}
			return io.NopCloser(strings.NewReader(content)), nil
		}
		documents = append(documents, d)
	}
	return documents, f.found, f.err
}

func (f *fakeSource) setFile(name, content string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if content == "" {
		delete(f.files, name)
		return
	}
	f.files[name] = content
}

// forgeFile replaces the text of a file without a change of its listing.
func (f *fakeSource) forgeFile(name, content string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.forged = map[string]string{name: content}
}

// loadAll makes a catalog of sources and loads it.
func loadAll(t testing.TB, opts catalog.Options, sources ...catalog.Source) *catalog.Catalog {
	t.Helper()
	if opts.Parse == nil {
		opts.Parse = parseTest
	}
	if opts.Lint == nil {
		opts.Lint = func(*workflow.Definition, []byte) []guideway.Diagnostic { return nil }
	}
	c := catalog.New(sources, opts)
	if err := c.Load(context.Background()); err != nil {
		t.Fatal(err)
	}
	return c
}

// servedList lists the served definitions as "id@version source", with a star for stale
// ones.
func servedList(s *catalog.Snapshot) []string {
	lines := []string{}
	for _, e := range s.List(catalog.Filter{}) {
		star := ""
		if e.Stale {
			star = "*"
		}
		lines = append(lines, e.Hash+" "+e.Source.Name+star)
	}
	return lines
}

// codeList lists the diagnostics as "code file", without the directory of the file.
func codeList(found []guideway.Diagnostic) []string {
	lines := []string{}
	for _, d := range found {
		lines = append(lines, d.Code+" "+filepath.Base(d.File))
	}
	slices.Sort(lines)
	return lines
}

func writeFile(t testing.TB, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func checkError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
