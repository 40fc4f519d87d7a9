//go:build no_ui

// Package ui is the dashboard, left out of this build.
package ui

import "io/fs"

// Files is nil: the program was built without the dashboard.
func Files() fs.FS { return nil }
