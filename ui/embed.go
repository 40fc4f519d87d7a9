//go:build !no_ui

// Package ui is the dashboard: a web application whose build is committed in dist
// and becomes part of the program. The build tag no_ui leaves it out.
package ui

import (
	"embed"
	"io/fs"
)

//go:embed dist
var dist embed.FS

// Files are index.html, icon.svg and the folder assets; nil where the program was
// built without them.
func Files() fs.FS {
	files, err := fs.Sub(dist, "dist")
	if err != nil {
		panic(err) // the name is a constant and valid
	}
	return files
}
