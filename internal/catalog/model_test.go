package catalog_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/guideway-dev/guideway/internal/catalog"
	"pgregory.net/rapid"
)

// Random edits of several sources have the results that a model of the rules predicts.
func TestAgainstModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		const count = 4
		var sources []catalog.Source
		var fakes []*fakeSource
		for i := range count {
			rank := rapid.IntRange(0, 2).Draw(rt, "rank")
			f := newFake(fmt.Sprintf("s%d", i), rank, map[string]string{})
			f.stamp = rapid.Bool().Draw(rt, "stamp")
			fakes, sources = append(fakes, f), append(sources, f)
		}
		c := catalog.New(sources, catalog.Options{Parse: parseTest})
		good := map[string]string{} // good has the last good text by source and file.
		before := servedList(c.Snapshot())
		var change catalog.Change
		c.OnChange(func(ch catalog.Change) { change = ch })
		version := 0
		for range rapid.IntRange(1, 5).Draw(rt, "rounds") {
			for range rapid.IntRange(0, 6).Draw(rt, "edits") {
				f := rapid.SampledFrom(fakes).Draw(rt, "source")
				name := rapid.SampledFrom([]string{"a.json", "b.json", "c.json"}).Draw(rt, "file")
				id := rapid.SampledFrom([]string{"x", "y", "z"}).Draw(rt, "id")
				version++
				f.setFile(name, rapid.SampledFrom([]string{
					"", definitionText(id, fmt.Sprint(version)), definitionText(id, fmt.Sprint(version)), `{"id":"` + id + `",`, "!",
				}).Draw(rt, "text"))
			}
			change = catalog.Change{}
			if err := c.Load(context.Background()); err != nil {
				rt.Fatal(err)
			}
			after := servedList(c.Snapshot())
			if diff := cmp.Diff(servedByModel(fakes, good), after); diff != "" {
				rt.Fatalf("served: %s", diff)
			}
			compareChange(rt, before, after, change)
			before = after
		}
	})
}

// servedByModel returns the definitions to serve, and updates the last good texts.
func servedByModel(fakes []*fakeSource, good map[string]string) []string {
	ordered := slices.Clone(fakes)
	slices.SortStableFunc(ordered, func(a, b *fakeSource) int { return a.info.Rank - b.info.Rank })
	byID := map[string]string{}
	for _, f := range ordered {
		own := map[string]bool{}
		for _, name := range []string{"a.json", "b.json", "c.json"} {
			key := f.info.Name + "/" + name
			content, there := f.files[name]
			if !there {
				delete(good, key)
				continue
			}
			star := "*"
			if strings.HasSuffix(content, "}") {
				good[key], star = content, ""
			}
			d, _ := parseTest(name, []byte(good[key]))
			if d == nil || own[d.ID] {
				continue
			}
			own[d.ID] = true
			byID[d.ID] = d.Hash + " " + f.info.Name + star
		}
	}
	lines := []string{}
	for _, line := range byID {
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return lines
}

// compareChange compares a change with the lists before and after it.
func compareChange(rt *rapid.T, before, after []string, change catalog.Change) {
	index := func(lines []string) map[string]string {
		byID := map[string]string{}
		for _, line := range lines {
			id, rest, _ := strings.Cut(strings.TrimSuffix(line, "*"), "@")
			byID[id] = rest
		}
		return byID
	}
	old, fresh := index(before), index(after)
	var added, removed, changed []string
	for _, id := range []string{"x", "y", "z"} {
		was, now := old[id], fresh[id]
		switch {
		case was == "" && now != "":
			added = append(added, id)
		case was != "" && now == "":
			removed = append(removed, id)
		case was != now:
			changed = append(changed, id)
		}
	}
	want := catalog.Change{Added: added, Removed: removed, Changed: changed}
	change.Diagnostics, change.Snapshot = false, nil
	if diff := cmp.Diff(want, change); diff != "" {
		rt.Fatalf("change: %s", diff)
	}
}
