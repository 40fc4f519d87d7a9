// Package workflows contains the bundled definitions.
package workflows

import (
	"embed"
	"io/fs"
)

//go:embed *.yaml hooks machines incident-response meta ticket-to-merge
var files embed.FS

// FS returns the folder of the bundled definitions: step workflows as files, phase
// workflows with their guides and templates in directories, in meta the activities, skills
// and rules for all of them, in hooks the hook graphs with their script modules, and in
// machines the agent machines, each with its script, its roles and a recorded
// demonstration.
func FS() fs.FS { return files }
