// Package workflows holds the bundled definitions.
package workflows

import (
	"embed"
	"io/fs"
)

//go:embed *.yaml hooks machines incident-response meta ticket-to-merge
var files embed.FS

// FS is the folder of the bundled definitions: step workflows in files of their
// own, phase workflows with their guides and templates in directories, in meta the
// activities, skills and rules for all of them, in hooks the hook graphs with the
// modules of their scripts, and in machines the agent machines, each with its script,
// its roles and a recording to try it with.
func FS() fs.FS { return files }
