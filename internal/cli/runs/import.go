package runs

import "github.com/guideway-dev/guideway/internal/cli/app"

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/workflow/doc"
	"github.com/guideway-dev/guideway/internal/workflow/phases"
)

// readState returns a state document as JSON, or nil if the data does not have the members
// of a state document. Errors of the document are printed on standard error.
func readState(h *app.Host, name string, data []byte) ([]byte, error) {
	var bundle struct {
		Format string `json:"format"`
	}
	if json.Unmarshal(data, &bundle) == nil && bundle.Format != "" {
		return nil, nil
	}
	file := app.DisplayName(name)
	root, found := doc.Parse(file, data, doc.Limits{MaxBytes: run.MaxBundle})
	if root == nil || root.Kind != doc.Object || phases.Guess(root) != phases.KindState {
		return nil, nil // reported by the bundle reader
	}
	state, more := phases.ParseState(file, root)
	if found = append(found, more...); len(found) > 0 {
		app.WriteDiagnostics(h.Err, found, h.ErrStyles())
		return nil, guideway.Errorf(guideway.CodeInvalid, "the state document %s is invalid (%s)", file, app.Plural(len(found), "error", "errors")).
			WithFix("guideway validate --dialect phases --kind state %s", name)
	}
	return []byte(state.Canonical), nil
}

// importState starts a run at the position in a state document.
func (o *RunsImportOptions) importState(ctx context.Context, state []byte) error {
	_, cat, err := o.app.LoadCatalog(ctx)
	if err != nil {
		return err
	}
	defer cat.Close()
	return o.app.WithRunsAndDefinitions(ctx, app.StartableDefinitions{Catalog: cat}, func(ctx context.Context, d *app.RunDeps) error {
		answer, err := d.Runs.ImportState(ctx, d.Caller, state, d.Project)
		if refusal, ok := run.AsRefusal(err); ok && refusal.Rule == engine.RulePerson {
			// The document may contain answers to gates that require human approval.
			var person run.Caller
			if person, err = confirmPerson(ctx, o.app, d.Caller, err); err == nil {
				answer, err = d.Runs.ImportState(ctx, person, state, d.Project)
			}
		}
		if err != nil {
			return userError(err)
		}
		if err := o.warnOfVersion(ctx, d, state, answer.RunID); err != nil {
			return err
		}
		return writeAnswer(o.app, answer, "Imported", o.JSON)
	})
}

// warnOfVersion prints a warning if the document is for a different version of the workflow
// than the run.
func (o *RunsImportOptions) warnOfVersion(ctx context.Context, d *app.RunDeps, state []byte, id string) error {
	var of struct {
		Version string `json:"workflowVersion"`
	}
	if err := json.Unmarshal(state, &of); err != nil {
		return fmt.Errorf("read the version in the state document: %w", err)
	}
	begun, err := d.Runs.Get(ctx, d.Caller, run.Ref{RunID: id})
	if err != nil {
		return userError(err)
	}
	if begun.Version != of.Version {
		fmt.Fprintf(o.app.Host.Err, "warning: the state document is for version %s of %q, but the run uses version %s, which is served now; check the position of the run\n",
			of.Version, begun.Workflow, begun.Version)
	}
	return nil
}

// confirmPerson asks for the passphrase and returns the caller as a person. Without a
// terminal, it returns refused.
func confirmPerson(ctx context.Context, a *app.App, c run.Caller, refused error) (run.Caller, error) {
	if a.Host.RequireTerminal() != nil {
		return c, refused
	}
	cfg, err := a.Load()
	if err != nil {
		return c, err
	}
	person := app.NewApprover(a.Host, cfg)
	if err := person.Passphrase.CheckUsable(); err != nil {
		return c, err
	}
	c.Via = run.ViaTerminal
	return c, person.CheckPassphrase(ctx)
}
