package checkpoints

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/bench/measure"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/store/keyfile"
	"github.com/guideway-dev/guideway/internal/store/rollbackguard"
	"github.com/guideway-dev/guideway/internal/store/sqlite"
	"github.com/guideway-dev/guideway/internal/workflow"
	"github.com/guideway-dev/guideway/workflows"
)

// walked is a run of a bundled workflow, exported at its start and after each step.
type walked struct {
	name    string
	exports []json.RawMessage
}

// fixture is a test fixture of a bundled workflow.
type fixture struct {
	Context map[string]any `yaml:"context"`
	Paths   []struct {
		Name    string                            `yaml:"name"`
		Context map[string]any                    `yaml:"context"`
		Sets    map[string]map[string]any         `yaml:"sets"`
		SetsAt  map[string]map[int]map[string]any `yaml:"setsAt"`
	} `yaml:"paths"`
	Outputs map[string]struct {
		Good string `yaml:"good"`
	} `yaml:"outputs"`
}

// bundled holds the bundled workflows by id.
type bundled map[string]*workflow.Definition

// Startable implements run.Definitions.
func (b bundled) Startable(_ context.Context, id string) (*workflow.Definition, error) {
	if def := b[id]; def != nil {
		return def, nil
	}
	return nil, guideway.Errorf(guideway.CodeNotFound, "there is no %s", id)
}

// walkWorkflows walks every path of every bundled steps workflow that has a fixture
// in the sources of the project.
func (b *bench) walkWorkflows(ctx context.Context) ([]walked, error) {
	files, err := filepath.Glob(filepath.Join(measure.Root, "workflows", "testdata", "*.yaml"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("no fixtures are in workflows/testdata: run the bench in its own directory")
	}
	defs := bundled{}
	service, shut, err := b.openRuns(ctx, defs)
	if err != nil {
		return nil, err
	}
	defer shut()
	var list []walked
	for _, file := range files {
		name := filepath.Base(file)
		text, err := fs.ReadFile(workflows.FS(), name)
		if err != nil {
			continue // the fixture is for a workflow of another dialect
		}
		def, _ := workflow.Check(name, text)
		fixtureText, err := os.ReadFile(file)
		if err != nil || def == nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		var fix fixture
		if err := yaml.Unmarshal(fixtureText, &fix); err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		id := strings.TrimSuffix(name, ".yaml")
		defs[id] = def
		for i := range fix.Paths {
			w, err := walkPath(ctx, service, id, fix, i)
			if err != nil {
				return nil, fmt.Errorf("walk %s, %s: %w", id, fix.Paths[i].Name, err)
			}
			list = append(list, w)
		}
	}
	return list, nil
}

// openRuns opens a run service.
func (b *bench) openRuns(ctx context.Context, defs bundled) (*run.Service, func(), error) {
	dir, err := b.newDir()
	if err != nil {
		return nil, nil, err
	}
	key, _, err := keyfile.LoadOrCreate(filepath.Join(dir, "journal.key"))
	if err != nil {
		return nil, nil, err
	}
	journal, err := sqlite.Open(ctx, sqlite.Options{Path: filepath.Join(dir, "guideway.db")})
	if err != nil {
		return nil, nil, err
	}
	heads, err := rollbackguard.Open(filepath.Join(dir, "heads"), key)
	if err != nil {
		return nil, nil, err
	}
	service, err := run.New(run.Options{Journal: journal, Definitions: defs, Key: key, Heads: heads})
	return service, func() { _ = journal.Close() }, err
}

// walkPath walks one path of a workflow with outputs that pass, and confirms its gates.
func walkPath(ctx context.Context, service *run.Service, id string, fix fixture, path int) (walked, error) {
	way := fix.Paths[path]
	w := walked{name: id + " " + way.Name}
	caller := run.Caller{Principal: owner(), Via: run.ViaAgent}
	start := mergeNumbers(fix.Context, way.Context)
	answer, err := service.Start(ctx, caller, run.StartRequest{WorkflowID: id, Goal: way.Name, Context: start})
	counts := map[string]int{}
	const longest = 200
	for range longest {
		if err != nil {
			return w, err
		}
		text, err := service.Export(ctx, caller, run.Ref{RunID: answer.RunID})
		if err != nil {
			return w, err
		}
		w.exports = append(w.exports, text)
		pos := answer.Position
		if pos.Kind == engine.PositionEnd {
			return w, nil
		}
		request := run.ContinueRequest{Handle: answer.Handle}
		if pos.Kind == engine.PositionGate {
			request.Answer = &engine.Answer{OptionID: engine.OptionConfirm}
		} else {
			counts[pos.ID]++
			request.Output = fix.Outputs[pos.ID].Good
			request.Context = mergeNumbers(way.Sets[pos.ID], way.SetsAt[pos.ID][counts[pos.ID]])
		}
		if answer, err = service.Continue(ctx, caller, request); err != nil {
			return w, err
		}
	}
	return w, fmt.Errorf("the walk does not end")
}

// mergeNumbers merges variables and converts YAML's integers to JSON's numbers.
func mergeNumbers(layers ...map[string]any) map[string]any {
	out := map[string]any{}
	for _, layer := range layers {
		for _, key := range slices.Sorted(maps.Keys(layer)) {
			out[key] = toJSONNumber(layer[key])
		}
	}
	return out
}

func toJSONNumber(v any) any {
	switch x := v.(type) {
	case int:
		return float64(x)
	case []any:
		list := slices.Clone(x)
		for i := range list {
			list[i] = toJSONNumber(list[i])
		}
		return list
	case map[string]any:
		return mergeNumbers(x)
	}
	return v
}
