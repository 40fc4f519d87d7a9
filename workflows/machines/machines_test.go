// Package machines_test checks the bundled agent machines and their recorded
// demonstrations.
package machines_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	machinedef "github.com/guideway-dev/guideway/internal/machine/definition"
	"github.com/guideway-dev/guideway/internal/machine/llm/scripted"
)

// Each bundled machine has no diagnostics. Its recording has a value for every input
// without a default, has no unknown input, and its answers can be loaded.
func TestRecordings(t *testing.T) {
	t.Parallel()
	fsys := os.DirFS(".")
	var names []string
	err := fs.WalkDir(fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	list := machinedef.LoadFiles(names, func(name string) ([]byte, error) { return fs.ReadFile(fsys, name) }, "")
	if len(list) < 3 {
		t.Fatalf("%d machines", len(list))
	}
	for _, l := range list {
		if l.Definition == nil {
			t.Fatal(l.Found)
		}
		for _, d := range l.Lint() {
			t.Error(d)
		}
		data, err := os.ReadFile(filepath.FromSlash(machinedef.RecordingOf(l, "")))
		if err != nil {
			t.Fatal(err)
		}
		var demo struct{ Inputs, Answers map[string]json.RawMessage }
		if err := json.Unmarshal(data, &demo); err != nil {
			t.Fatal(err)
		}
		if _, err := scripted.Parse(data); err != nil {
			t.Errorf("%s: %v", l.Claims, err)
		}
		for _, in := range l.Definition.Inputs {
			if _, given := demo.Inputs[in.Name]; !given && !in.Optional {
				t.Errorf("%s: the recording has no value for %s", l.Claims, in.Name)
			}
		}
		for name := range demo.Inputs {
			if !slices.ContainsFunc(l.Definition.Inputs, func(in machinedef.Input) bool { return in.Name == name }) {
				t.Errorf("%s: there is no input %s", l.Claims, name)
			}
		}
		for name := range demo.Answers {
			if !slices.ContainsFunc(l.Definition.States, func(s machinedef.State) bool { return s.Ask != nil && s.Ask.Name == name }) {
				t.Errorf("%s: no state asks for %s", l.Claims, name)
			}
		}
	}
}
