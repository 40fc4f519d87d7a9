package catalog

import (
	"path"
	"strings"
)

// Wanted says whether a copy of a source needs the file of this name: what a
// source of definitions reads, and the files of its machines. The name is relative,
// with slashes.
func Wanted(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if isSkipped(part) {
			return false
		}
	}
	if IsMachineFile(name) {
		return true
	}
	return isDocument(name)
}

// IsMachineFile says whether a file belongs to an agent machine: those are no
// documents of a catalog.
func IsMachineFile(name string) bool {
	rest, ok := strings.CutPrefix(name, machinesDir+"/")
	if !ok {
		return false
	}
	switch path.Ext(rest) {
	case ".json", ".yaml", ".yml", ".js":
		return strings.Count(rest, "/") <= 1
	default:
		return false
	}
}
