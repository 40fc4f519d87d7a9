package machines

import (
	"path"

	"github.com/guideway-dev/guideway/internal/definition/doc"
)

// Kind says what a document of the dialect is.
type Kind string

// The kinds. A script is no document.
const (
	KindMachine Kind = "machine"
	KindRoles   Kind = "roles"
)

// Kinds are the kinds that there are.
func Kinds() []Kind { return []Kind{KindMachine, KindRoles} }

// Guess tells a document of the dialect by its members, and a file of roles by its
// name, too; "" is none.
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
