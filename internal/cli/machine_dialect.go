package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/guideway-dev/guideway/internal/definition"
	"github.com/guideway-dev/guideway/internal/definition/machines"
	"github.com/guideway-dev/guideway/internal/definition/phases"
	"github.com/guideway-dev/guideway/internal/regularfile"
)

// isMachine says whether a document is a configuration of a machine.
func isMachine(file string, data []byte, as definition.As) bool {
	guessed := definition.Guess(file, data, as)
	return guessed.Dialect == guideway.DialectMachines && guessed.Kind == phases.Kind(machines.KindMachine)
}

// validateMachine checks the machine of a configuration, with the script and the
// roles that lie beside it.
func (h *Host) validateMachine(name string, file validateFile) validateFile {
	root, err := os.OpenRoot(filepath.Dir(h.abs(name)))
	if err != nil {
		file.Error = unreadable(name, err).Error()
		return file
	}
	defer root.Close()
	l := machines.LoadFile(regularfile.In(root), filepath.Dir(name), filepath.Base(name))
	file.Dialect, file.Kind, file.Diagnostics = guideway.DialectMachines, phases.Kind(machines.KindMachine), orEmpty(l.Found)
	if l.Definition != nil {
		file.Valid, file.ID, file.Hash, file.Diagnostics = true, l.Definition.Name, l.Definition.Hash, orEmpty(l.Lint())
	}
	return file
}

// isRecording says whether a file is the recording of the machine beside it, which is
// no definition.
func isRecording(path string) bool {
	dir := filepath.Dir(path)
	if filepath.Base(path) != "recording.json" {
		return false
	}
	for _, config := range []string{
		filepath.Join(dir, "machine.json"), filepath.Join(dir, "machine.yaml"), filepath.Join(dir, "machine.yml"), filepath.Join(dir, "config.json"),
		dir + ".json", dir + ".yaml", dir + ".yml",
	} {
		if _, err := os.Stat(config); err == nil {
			return true
		}
	}
	return false
}

// machineRows are the machines that load; their steps are their states.
func (o *listOptions) machineRows(snap *catalog.Snapshot) []listRow {
	var rows []listRow
	for _, e := range snap.Machines() {
		d := e.Definition
		if d == nil || o.Source != "" && o.Source != e.Source.Name || !o.has(d.Name, d.Description) {
			continue
		}
		rows = append(rows, listRow{
			ID: d.Name, Name: d.Name, Description: d.Description, Version: d.Version, Dialect: guideway.DialectMachines,
			Steps: len(d.States), Source: e.Source.Name, Path: e.Path, Hash: d.Hash, Stale: e.Stale, Overrides: e.Overrides,
		})
	}
	return rows
}

// showMachine shows a machine, where the name is one: of a file, or of the catalog
// where no workflow has it.
func (o *showOptions) showMachine(ctx context.Context) (is bool, err error) {
	if o.Name == "-" {
		return false, nil // the standard input can be read once, and is a workflow
	}
	if isPath(o.Name) {
		info, err := os.Stat(o.app.host.abs(o.Name))
		switch {
		case err != nil:
			return false, nil //nolint:nilerr // who looks for a workflow says so
		case !info.IsDir():
			data, err := o.app.host.readDefinition(ctx, o.Name)
			if err != nil || !isMachine(o.Name, data, definition.As{}) {
				return false, nil //nolint:nilerr // who looks for a workflow says so
			}
		}
	}
	_, shelf, err := o.app.openShelf(ctx)
	if err != nil {
		return false, err
	}
	if !isPath(o.Name) {
		if _, err := shelf.snapshot().Machine(o.Name); guideway.ErrorCode(err) == guideway.CodeNotFound {
			return false, nil
		}
		if _, err := shelf.snapshot().Get(o.Name); guideway.ErrorCode(err) != guideway.CodeNotFound {
			return false, nil
		}
	}
	return true, (&machineShowOptions{app: o.app, Name: o.Name, Graph: o.Graph, JSON: o.JSON}).showOne(shelf)
}

// showOne shows a machine of the shelf.
func (o *machineShowOptions) showOne(shelf *machineShelf) error {
	one, err := shelf.find(o.Name)
	if err != nil {
		return err
	}
	host, d := o.app.host, one.Definition
	switch {
	case o.Graph != "" && !o.JSON:
		fmt.Fprint(host.Out, d.Mermaid())
	case o.JSON:
		return writeJSON(host.Out, newMachineShowAnswer(one, o.Graph))
	default:
		showMachine(host, one, d)
	}
	return nil
}

// machineShowAnswer is the answer of guideway machine show --json.
type machineShowAnswer struct {
	ID          string               `json:"id"`
	Name        string               `json:"name"`
	Description string               `json:"description"`
	Version     string               `json:"version"`
	Dialect     guideway.Dialect     `json:"dialect"`
	Hash        string               `json:"hash"`
	Source      string               `json:"source"`
	Path        string               `json:"path"`
	Revision    string               `json:"revision,omitempty"`
	Stale       bool                 `json:"stale,omitempty"`
	Overrides   []catalog.Overridden `json:"overrides,omitempty"`
	// Definition is what pins the machine: the configuration, the roles that its
	// agents play, and the script.
	Definition json.RawMessage `json:"definition"`
	// Ways are the states that may follow each other, as far as the handlers tell
	// without being run.
	Ways  []machines.Edge `json:"ways"`
	Graph *showGraph     `json:"graph,omitempty"`
}

func newMachineShowAnswer(one *shelved, graph string) machineShowAnswer {
	d := one.Definition
	a := machineShowAnswer{
		ID: d.Name, Name: d.Name, Description: d.Description, Version: d.Version, Dialect: guideway.DialectMachines, Hash: d.Hash,
		Source: one.Source, Path: one.Path, Revision: one.Revision, Stale: one.Stale, Overrides: one.Overrides,
		Definition: json.RawMessage(d.Canonical), Ways: d.Edges(),
	}
	if graph != "" {
		a.Graph = &showGraph{Format: graph, Text: d.Mermaid()}
	}
	return a
}

// machineExample are the files of a machine that guideway init begins with, by their
// names.
func machineExample() ([]string, func(name string) string) {
	names := []string{"machine.json", "roles.json", "script.js", "recording.json"}
	return names, func(name string) string {
		text, err := exampleMachine.ReadFile("example/machine/" + name)
		if err != nil { // they are embedded
			return ""
		}
		return strings.ReplaceAll(string(text), "\r\n", "\n")
	}
}
