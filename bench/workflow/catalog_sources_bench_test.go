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

// The catalog of a large team: 2,000 definitions over six sources, three of which
// are copies of what is elsewhere.
const (
	teamSources     = 6
	teamDefinitions = 2_000
)

// texts gives the definitions of a source to its copy.
type texts struct {
	names []string
	texts map[string]string
}

// Fetch implements mirror.Fetcher.
func (f *texts) Fetch(_ context.Context, have *mirror.Have, stage func() (*mirror.Stage, error)) (mirror.Fetched, error) {
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

// team writes the sources and gives what makes them anew, as a start does. One of the
// directories is the first.
func team(b *testing.B) (start func() []catalog.Source, dir string) {
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
				ok(b, os.MkdirAll(location, 0o755))
				path := filepath.Join(location, name)
				ok(b, os.WriteFile(path, []byte(text), 0o644))
				past := time.Now().Add(-time.Hour)
				ok(b, os.Chtimes(path, past, past))
			}
			makers = append(makers, func() catalog.Source { return catalog.NewDir(info, catalog.DirOptions{}) })
			continue
		}
		make := func() catalog.Source {
			return mirror.New(info, mirror.Options{Dir: location, Origin: info.Name, Fetcher: f, Interval: time.Hour})
		}
		_, err := make().(*mirror.Source).Sync(b.Context())
		ok(b, err)
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

func ok(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func loadTeam(b *testing.B, sources []catalog.Source, index string) *catalog.Catalog {
	b.Helper()
	c := catalog.New(sources, catalog.Options{Index: index})
	ok(b, c.Load(b.Context()))
	if n := len(c.List(catalog.Filter{})); n < teamDefinitions-teamSources {
		b.Fatalf("%d definitions: %v", n, c.Diagnostics())
	}
	return c
}

// BenchmarkTeamStart is the share of the catalog in a start, from copies: the budget
// is 100 ms. It says how much memory the catalog holds afterwards, and what CPU time a
// start takes, which is the same on a machine that has other work.
func BenchmarkTeamStart(b *testing.B) {
	start, _ := team(b)
	index := b.TempDir()
	loadTeam(b, start(), index) // which makes the index
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

// BenchmarkTeamReload is a look at all sources after one of 2,000 definitions has
// changed: the budget is a second, with what it takes to notice.
func BenchmarkTeamReload(b *testing.B) {
	start, dir := team(b)
	c := loadTeam(b, start(), b.TempDir())
	n := 0
	for b.Loop() {
		n++
		text := strings.Replace(teamWorkflow("team-0-0007"), "1.0.0", fmt.Sprintf("1.0.%d", n), 1)
		ok(b, os.WriteFile(filepath.Join(dir, "w0007.json"), []byte(text), 0o644))
		ok(b, c.Load(b.Context()))
		if e, err := c.Get("team-0-0007"); err != nil || e.Definition.Version != fmt.Sprintf("1.0.%d", n) {
			b.Fatalf("%v: %v", e, err)
		}
	}
}
