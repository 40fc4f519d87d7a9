package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

// deed is the answer of a command that has changed something, with --json. It has one
// shape for all that the gateway is made of; a command may have more to say beside it.
type deed struct {
	// Did is a word for what was done, such as "added"; with Changed false it was so
	// before.
	Did     string `json:"did"`
	Changed bool   `json:"changed"`
	// Kind and Name say to what: "upstream", "token", "hook graph", "hook module".
	Kind string `json:"kind"`
	Name string `json:"name"`
	// Project is the one that an upstream is in now.
	Project string `json:"project,omitempty"`
	// File was written.
	File string `json:"file,omitempty"`
	// Disabled are the graphs that were turned off for it.
	Disabled []string `json:"disabled,omitempty"`
	Notes    []string `json:"notes,omitempty"`
}

// The kinds of what deeds are done to.
const (
	kindUpstream   = "upstream"
	kindToken      = "token"
	kindHookGraph  = "hook graph"
	kindHookModule = "hook module"
)

// deedFlag adds --json to a command that changes something.
func deedFlag(cmd *cobra.Command, asJSON *bool) {
	cmd.Flags().BoolVar(asJSON, "json", false, "answer in JSON: what it did to which kind and name, changed, and notes where there are any")
}

// done tells of a deed, in words to a person, or as JSON.
func (h *Host) done(asJSON bool, d any, words string) error {
	if asJSON {
		return writeJSON(h.Out, d)
	}
	_, err := fmt.Fprintln(h.Err, words)
	return err
}
