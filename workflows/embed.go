// Package workflows holds the bundled definitions.
package workflows

import (
	"embed"
	"io/fs"
)

//go:embed *.yaml
var files embed.FS

// FS is the folder of the bundled definitions, one file each.
func FS() fs.FS { return files }
