package gateway

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// separator separates the upstream's name from the tool's name. It never occurs in an
// upstream's name, so that a name can be split in only one way.
const separator = "__"

// maxName is the maximum length of a name in MCP.
const maxName = 128

// names assigns names that are unique, valid in MCP and not reserved. For the same
// originals in the same order, it assigns the same names.
type names struct{ taken map[string]bool }

func newNames(reserved []string) *names {
	n := &names{taken: map[string]bool{}}
	for _, name := range reserved {
		n.taken[name] = true
	}
	return n
}

// reservedNames holds the names of this server's own tools and prompts.
type reservedNames struct{ tools, prompts []string }

// assignName assigns a name to a tool or a prompt. ok is false if the name is taken. A name
// that had to be changed gets a hash of the original, so that it does not depend on other
// names.
func (n *names) assignName(prefix, original string) (name string, ok bool) {
	name = prefix + replaceInvalid(original)
	if len(name) > maxName || name != prefix+original {
		mark := "_" + hashOf(original)
		name = name[:min(len(name), maxName-len(mark))] + mark
	}
	if n.taken[name] {
		return "", false
	}
	n.taken[name] = true
	return name, true
}

// replaceInvalid replaces the characters that a name must not contain.
func replaceInvalid(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-', r == '.':
			return r
		}
		return '_'
	}, name)
}

// hashOf returns a short hash of a name.
func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:4])
}
