package machine

import "github.com/guideway-dev/guideway/internal/cli/server"

import "github.com/guideway-dev/guideway/internal/cli/app"

import (
	"encoding/json"
	"fmt"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog"
	machinedef "github.com/guideway-dev/guideway/internal/machine/definition"
)

// ShowMachine shows a machine of the resolver.
func (o *MachineShowOptions) ShowMachine(resolver *server.MachineResolver) error {
	one, err := resolver.Find(o.Name)
	if err != nil {
		return err
	}
	host, d := o.App.Host, one.Definition
	switch {
	case o.Graph != "" && !o.JSON:
		fmt.Fprint(host.Out, d.Mermaid())
	case o.JSON:
		return app.WriteJSON(host.Out, newMachineShowAnswer(one, o.Graph))
	default:
		return showMachine(host, one)
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
	// Definition is the pinned content of the machine: its configuration, the roles of its
	// agents and its script.
	Definition json.RawMessage `json:"definition"`
	// Ways are the transitions between states, as far as they can be found without running
	// the handlers.
	Ways  []machinedef.Edge `json:"ways"`
	Graph *app.GraphOutput  `json:"graph,omitempty"`
}

func newMachineShowAnswer(one *server.ResolvedMachine, graph string) machineShowAnswer {
	d := one.Definition
	a := machineShowAnswer{
		ID: d.Name, Name: d.Name, Description: d.Description, Version: d.Version, Dialect: guideway.DialectMachines, Hash: d.Hash,
		Source: one.Source, Path: one.Path, Revision: one.Revision, Stale: one.Stale, Overrides: one.Overrides,
		Definition: json.RawMessage(d.Canonical), Ways: d.Edges(),
	}
	if graph != "" {
		a.Graph = &app.GraphOutput{Format: graph, Text: d.Mermaid()}
	}
	return a
}
