//go:build !unix

package project

import "path/filepath"

// isOwnedLike reports whether no name is directly in the root of a volume, where all users
// may create files.
func isOwnedLike(_ string, names ...string) bool {
	for _, name := range names {
		if parent := filepath.Dir(name); parent == name || filepath.Base(name) == ".git" && filepath.Dir(parent) == parent {
			return false
		}
	}
	return true
}
