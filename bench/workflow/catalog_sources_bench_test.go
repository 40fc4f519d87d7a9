package workflow

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/guideway-dev/guideway/bench/measure"
	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/guideway-dev/guideway/internal/catalog/mirror"
)

// The catalog of a large team: about 2,000 definitions in six sources, three of which are
// copies of remote sources.
const (
	teamSources     = 6
	teamDefinitions = 2_000
)

// texts implements mirror.Fetcher with definitions in memory.
type texts struct {
	names []string
	texts map[string]string
}

// Fetch implements mirror.Fetcher.
func (f *texts) Fetch(_ context.Context, have *mirror.Previous, stage func() (*mirror.Stage, error)) (mirror.Fetched, error) {
	got := mirror.Fetched{Revision: "1"}
	if have != nil {
		return got, nil
	}
	to, err := stage()
	if err != nil {
		return got, err
	}
	for _, name := range f.names {
		if err := to.Add(name, 1<<20, strings.NewReader(f.texts[name])); err != nil {
			return got, err
		}
	}
	return got, nil
}

// writeTeamSources writes the sources. start returns them newly opened, as at a start of
// the program; dir is the first directory.
func writeTeamSources(b *testing.B) (start func() []catalog.Source, dir string) {
	b.Helper()
	root := b.TempDir()
	var makers []func() catalog.Source
	for i := range teamSources {
		f := &texts{texts: map[string]string{}}
		for j := range teamDefinitions / teamSources {
			name := fmt.Sprintf("w%04d.json", j)
			f.names, f.texts[name] = append(f.names, name), teamWorkflow(fmt.Sprintf("team-%d-%04d", i, j))
		}
		location := filepath.Join(root, fmt.Sprint(i))
		info := catalog.SourceInfo{Name: fmt.Sprint("source-", i), Location: location, Rank: i}
		if i%2 == 0 {
			for name, text := range f.texts {
				failOn(b, os.MkdirAll(location, 0o755))
				path := filepath.Join(location, name)
				failOn(b, os.WriteFile(path, []byte(text), 0o644))
				past := time.Now().Add(-time.Hour)
				failOn(b, os.Chtimes(path, past, past))
			}
			makers = append(makers, func() catalog.Source { return catalog.NewDir(info, catalog.DirOptions{}) })
			continue
		}
		make := func() catalog.Source {
			return mirror.New(info, mirror.Options{Dir: location, Origin: info.Name, Fetcher: f, Interval: time.Hour})
		}
		_, err := make().(*mirror.Source).Sync(b.Context())
		failOn(b, err)
		makers = append(makers, make)
	}
	return func() (sources []catalog.Source) {
		for _, make := range makers {
			sources = append(sources, make())
		}
		return sources
	}, filepath.Join(root, "0")
}

func teamWorkflow(id string) string {
	var steps []string
	for j := range 8 {
		steps = append(steps, fmt.Sprintf(`{"id": "step-%d", "title": "Step %d", "prompt": %q, "runCondition": {"var": "size", "equals": "Large"}}`,
			j, j, strings.Repeat("Do this and show the evidence. ", 12)))
	}
	return fmt.Sprintf(`{"id": %q, "name": "N", "description": "D", "version": "1.0.0", "steps": [%s]}`, id, strings.Join(steps, ","))
}

func failOn(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func loadTeam(b *testing.B, sources []catalog.Source, index string) *catalog.Catalog {
	b.Helper()
	c := catalog.New(sources, catalog.Options{Index: index})
	failOn(b, c.Load(b.Context()))
	if n := len(c.List(catalog.Filter{})); n < teamDefinitions-teamSources {
		b.Fatalf("%d definitions: %v", n, c.Diagnostics())
	}
	return c
}

// BenchmarkTeamStart measures the time that the catalog takes at a start of the program if
// the index exists: the budget is 100 ms. It also reports the memory of the catalog, and
// the CPU time, which does not depend on other work of the machine.
func BenchmarkTeamStart(b *testing.B) {
	start, _ := writeTeamSources(b)
	index := b.TempDir()
	loadTeam(b, start(), index) // the first load creates the index
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var c *catalog.Catalog
	clock := measure.StartCPU(os.Getpid())
	for b.Loop() {
		c = loadTeam(b, start(), index)
	}
	if ms := clock.PerCall(b.N); ms != nil {
		b.ReportMetric(*ms, "cpu-ms/op")
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/(1<<20), "MB-held")
	runtime.KeepAlive(c)
}

// BenchmarkTeamReload measures a check of all sources after one definition has changed: the
// budget is a second, including the detection.
func BenchmarkTeamReload(b *testing.B) {
	start, dir := writeTeamSources(b)
	c := loadTeam(b, start(), b.TempDir())
	n := 0
	for b.Loop() {
		n++
		text := strings.Replace(teamWorkflow("team-0-0007"), "1.0.0", fmt.Sprintf("1.0.%d", n), 1)
		failOn(b, os.WriteFile(filepath.Join(dir, "w0007.json"), []byte(text), 0o644))
		failOn(b, c.Load(b.Context()))
		if e, err := c.Get("team-0-0007"); err != nil || e.Definition.Version != fmt.Sprintf("1.0.%d", n) {
			b.Fatalf("%v: %v", e, err)
		}
	}
}
