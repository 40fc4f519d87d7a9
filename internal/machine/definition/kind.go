package definition

import (
	"path"

	"github.com/guideway-dev/guideway/internal/workflow/doc"
	"github.com/guideway-dev/guideway/internal/workflow/shape"
)

// Kind is the kind of a document of the dialect.
type Kind = shape.Kind

// The kinds. A script is not a document.
const (
	KindMachine Kind = "machine"
	KindRoles   Kind = "roles"
)

// Kinds returns all kinds.
func Kinds() []Kind { return []Kind{KindMachine, KindRoles} }

// Guess returns the kind of a document by its members, and for roles also by the name of
// the file. It returns "" for a document of another dialect.
func Guess(file string, root *doc.Node) Kind {
	if root == nil || root.Kind != doc.Object {
		return ""
	}
	if root.Get("workflow_name") != nil && (root.Get("states") != nil || root.Get("agents") != nil || root.Get("contexts") != nil) {
		return KindMachine
	}
	roles := 0
	for i := range root.Members {
		if root.Members[i].Key == "$schema" {
			continue
		}
		value := root.Members[i].Value
		if roles++; value.Kind != doc.Object || value.Get("systemMessage") == nil && value.Get("system_message") == nil && stemOf(path.Base(file)) != "roles" {
			return ""
		}
	}
	if roles == 0 {
		return ""
	}
	return KindRoles
}
