//go:build !no_ui

// Package ui contains the dashboard: a web application whose build is committed in dist and
// embedded in the program. The build tag no_ui omits it.
package ui

import (
	"embed"
	"io/fs"
)

//go:embed dist
var dist embed.FS

// Files returns index.html, icon.svg and the folder assets, or nil if the program was built
// without them.
func Files() fs.FS {
	files, err := fs.Sub(dist, "dist")
	if err != nil {
		panic(err) // the name is a valid constant
	}
	return files
}
