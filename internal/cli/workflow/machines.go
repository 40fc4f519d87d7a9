package workflow

import "github.com/guideway-dev/guideway/internal/cli/server"

import "github.com/guideway-dev/guideway/internal/cli/app"

import machinecmd "github.com/guideway-dev/guideway/internal/cli/machine"

import (
	"context"
	"os"
	"path/filepath"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog"
	machinedef "github.com/guideway-dev/guideway/internal/machine/definition"
	"github.com/guideway-dev/guideway/internal/platform/safeopen"
	"github.com/guideway-dev/guideway/internal/workflow"
	"github.com/guideway-dev/guideway/internal/workflow/phases"
)

// isMachine reports whether a document is the configuration of a machine.
func isMachine(file string, data []byte, as workflow.As) bool {
	guessed := workflow.Guess(file, data, as)
	return guessed.Dialect == guideway.DialectMachines && guessed.Kind == phases.Kind(machinedef.KindMachine)
}

// validateMachine checks a machine with the script and the roles in its directory.
func validateMachine(h *app.Host, name string, file app.ValidateFile) app.ValidateFile {
	root, err := os.OpenRoot(filepath.Dir(h.Abs(name)))
	if err != nil {
		file.Error = app.ReadError(name, err).Error()
		return file
	}
	defer root.Close()
	l := machinedef.LoadFile(safeopen.In(root), filepath.Dir(name), filepath.Base(name))
	file.Dialect, file.Kind, file.Diagnostics = guideway.DialectMachines, phases.Kind(machinedef.KindMachine), app.OrEmpty(l.Found)
	if l.Definition != nil {
		file.Valid, file.ID, file.Hash, file.Diagnostics = true, l.Definition.Name, l.Definition.Hash, app.OrEmpty(l.Lint())
	}
	return file
}

// machineRows returns the machines that load, with the number of their states as steps.
func (o *ListOptions) machineRows(snap *catalog.Snapshot) []listRow {
	var rows []listRow
	for _, e := range snap.Machines() {
		d := e.Definition
		if d == nil || o.Source != "" && o.Source != e.Source.Name || !o.containsAllWords(d.Name, d.Description) {
			continue
		}
		rows = append(rows, listRow{
			ID: d.Name, Name: d.Name, Description: d.Description, Version: d.Version, Dialect: guideway.DialectMachines,
			Steps: len(d.States), Source: e.Source.Name, Path: e.Path, Hash: d.Hash, Stale: e.Stale, Overrides: e.Overrides,
		})
	}
	return rows
}

// showMachine shows a machine if the name is the file or the directory of a machine, or the
// id of a machine in the catalog that is not also the id of a workflow.
func (o *ShowOptions) showMachine(ctx context.Context) (is bool, err error) {
	if o.Name == "-" {
		return false, nil // standard input can be read only once; it is read as a workflow
	}
	if app.IsPath(o.Name) {
		info, err := os.Stat(o.app.Host.Abs(o.Name))
		switch {
		case err != nil:
			return false, nil //nolint:nilerr // the search for a workflow reports the error
		case !info.IsDir():
			data, err := o.app.Host.ReadDefinition(ctx, o.Name)
			if err != nil || !isMachine(o.Name, data, workflow.As{}) {
				return false, nil //nolint:nilerr // the search for a workflow reports the error
			}
		}
	}
	_, shelf, err := server.OpenMachineResolver(ctx, o.app)
	if err != nil {
		return false, err
	}
	if !app.IsPath(o.Name) {
		if _, err := shelf.Snapshot().Machine(o.Name); guideway.ErrorCode(err) == guideway.CodeNotFound {
			return false, nil
		}
		if _, err := shelf.Snapshot().Get(o.Name); guideway.ErrorCode(err) != guideway.CodeNotFound {
			return false, nil
		}
	}
	return true, (&machinecmd.MachineShowOptions{App: o.app, Name: o.Name, Graph: o.Graph, JSON: o.JSON}).ShowMachine(shelf)
}
