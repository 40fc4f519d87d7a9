package httpapi

import (
	"encoding/json"

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

func (a *api) workflows(*call) (any, error) {
	list := []workflowSummary{}
	for _, entry := range a.Catalog.List(catalog.Filter{}) {
		list = append(list, summary(entry))
	}
	return object{"count": len(list), "workflows": list}, nil
}

// workflow returns a definition as canonical JSON, and the definitions with the same
// id that are not served.
func (a *api) workflow(c *call) (any, error) {
	entry, err := a.Catalog.Get(c.PathValue("id"))
	if err != nil {
		return nil, err
	}
	out := object{"workflow": summary(entry.Entry), "definition": json.RawMessage(entry.Definition.Canonical)}
	if len(entry.Overrides) > 0 {
		out["overrides"] = entry.Overrides
	}
	return out, nil
}
