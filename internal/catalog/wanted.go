package catalog

import "strings"

// Wanted says whether a source reads what has this name in it: whoever makes a copy
// of one needs no other files. The name is relative, with slashes.
func Wanted(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if isSkipped(part) {
			return false
		}
	}
	return isDocument(name)
}
