package httpapi

import (
	"encoding/json"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog"
)

// workflowSummary describes a definition in a list.
type workflowSummary struct {
	ID          string           `json:"id"`
	Name        string           `json:"name"`
	Description string           `json:"description"`
	Version     string           `json:"version"`
	Dialect     guideway.Dialect `json:"dialect"`
	Hash        string           `json:"hash"`
	// Source is the name of the source, and Path the path of the document in it.
	Source string `json:"source"`
	Path   string `json:"path"`
	// Revision is the version of the source, such as a commit.
	Revision string `json:"revision,omitempty"`
	// Stale reports that the document no longer loads, and that this is the last version
	// that did.
	Stale bool `json:"stale,omitempty"`
}

func summarizeEntry(e *catalog.Entry) workflowSummary {
	return workflowSummary{
		ID: e.ID, Name: e.Name, Description: e.Description, Version: e.Version, Dialect: e.Dialect,
		Hash: e.Hash, Source: e.Source.Name, Path: e.Path, Revision: e.Revision, Stale: e.Stale,
	}
}

func (a *api) listWorkflows(*call) (any, error) {
	list := []workflowSummary{}
	for _, entry := range a.Catalog.List(catalog.Filter{}) {
		list = append(list, summarizeEntry(entry))
	}
	return object{"count": len(list), "workflows": list}, nil
}

// getWorkflow returns a definition as canonical JSON, and the definitions with the same id
// that have a lower precedence.
func (a *api) getWorkflow(c *call) (any, error) {
	entry, err := a.Catalog.Get(c.PathValue("id"))
	if err != nil {
		return nil, err
	}
	out := object{"workflow": summarizeEntry(entry.Entry), "definition": json.RawMessage(entry.Definition.Canonical)}
	if len(entry.Overrides) > 0 {
		out["overrides"] = entry.Overrides
	}
	return out, nil
}
