package app

import (
	"fmt"

	"github.com/spf13/cobra"
)

// ChangeResult is the --json output of a command that changes an object. A command may
// embed it and add members.
type ChangeResult struct {
	// Action is a participle such as "added". If Changed is false, the object was in
	// that state before.
	Action  string `json:"action"`
	Changed bool   `json:"changed"`
	// Kind and Name identify the object.
	Kind string `json:"kind"`
	Name string `json:"name"`
	// Project is the project of the upstream after the change.
	Project string `json:"project,omitempty"`
	// File is the path of the file that was written.
	File  string   `json:"file,omitempty"`
	Notes []string `json:"notes,omitempty"`
}

// The kinds of objects.
const (
	KindUpstream   = "upstream"
	KindToken      = "token"
	KindHookGraph  = "hook graph"
	KindHookModule = "hook module"
	KindSigningKey = "signing key"
)

// AddChangeFlag adds --json to a command that changes something.
func AddChangeFlag(cmd *cobra.Command, asJSON *bool) {
	cmd.Flags().BoolVar(asJSON, "json", false, "print the result as JSON: action, changed, kind and name, and, where they apply, project, file, notes and what the command created")
}

// WriteChange prints the result of a change: as JSON on standard output if asJSON is set,
// otherwise words on standard error.
func (h *Host) WriteChange(asJSON bool, result any, words string) error {
	return h.WriteJSONOr(asJSON, result, func() { fmt.Fprintln(h.Err, words) })
}
