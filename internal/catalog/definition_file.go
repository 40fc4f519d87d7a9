package catalog

import "strings"

// IsDefinitionFile reports whether a source reads a file with this name; a copy of a source
// needs no other files. The name is relative, with slashes.
func IsDefinitionFile(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if isSkipped(part) {
			return false
		}
	}
	return isDocument(name)
}
