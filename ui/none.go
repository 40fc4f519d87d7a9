//go:build no_ui

// Package ui is a stub for builds without the dashboard.
package ui

import "io/fs"

// Files returns nil: the program was built without the dashboard.
func Files() fs.FS { return nil }
