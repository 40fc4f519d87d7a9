package httpapi

import (
	"encoding/json"
	"net/http"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog"
)

// workflowSummary is a definition in a list.
type workflowSummary struct {
	ID          string           `json:"id"`
	Name        string           `json:"name"`
	Description string           `json:"description"`
	Version     string           `json:"version"`
	Dialect     guideway.Dialect `json:"dialect"`
	Hash        string           `json:"hash"`
	// Source names the source, Path the document in it.
	Source string `json:"source"`
	Path   string `json:"path"`
	// Revision is what of the source this is, such as a commit.
	Revision string `json:"revision,omitempty"`
	// Stale says that the document no longer loads, and that this is the last
	// version that did.
	Stale bool `json:"stale,omitempty"`
}

func summary(e *catalog.Entry) workflowSummary {
	return workflowSummary{
		ID: e.ID, Name: e.Name, Description: e.Description, Version: e.Version, Dialect: e.Dialect,
		Hash: e.Hash, Source: e.Source.Name, Path: e.Path, Revision: e.Revision, Stale: e.Stale,
	}
}

func (a *api) workflows(w http.ResponseWriter, _ *http.Request) error {
	type list struct {
		Success   bool              `json:"success"`
		Count     int               `json:"count"`
		Workflows []workflowSummary `json:"workflows"`
	}
	all := list{Success: true, Workflows: []workflowSummary{}}
	for _, entry := range a.Catalog.List(catalog.Filter{}) {
		all.Workflows = append(all.Workflows, summary(entry))
	}
	all.Count = len(all.Workflows)
	answer(w, http.StatusOK, all)
	return nil
}

func (a *api) workflow(w http.ResponseWriter, r *http.Request) error {
	entry, err := a.Catalog.Get(r.PathValue("id"))
	if err != nil {
		return err
	}
	type details struct {
		Success  bool            `json:"success"`
		Workflow workflowSummary `json:"workflow"`
		// Definition is the document as canonical JSON.
		Definition json.RawMessage `json:"definition"`
		// Overrides are definitions with the same id that are not served.
		Overrides []catalog.Overridden `json:"overrides,omitempty"`
	}
	answer(w, http.StatusOK, details{
		Success: true, Workflow: summary(entry.Entry),
		Definition: json.RawMessage(entry.Definition.Canonical), Overrides: entry.Overrides,
	})
	return nil
}
