// Package machines holds the bundled agent machines, each with its script, its
// roles and a recording to try it with.
package machines

import (
	"embed"
	"io/fs"
)

//go:embed code-and-review research-panel support-desk
var files embed.FS

// FS is the folder of the bundled machines: a directory for each, with
// machine.json, script.js, roles.json and recording.json.
func FS() fs.FS { return files }
