package gateway

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// separator stands between the name of an upstream and that of its tool. No
// upstream's name has it, so that a name can be taken apart in one way only.
const separator = "__"

// maxName is the longest name that the protocol allows.
const maxName = 128

// names gives names that are unique, of the characters that the protocol allows,
// and not reserved. It is given all names in the same order each time, so that
// it gives each the same name.
type names struct{ taken map[string]bool }

func newNames(reserved []string) *names {
	n := &names{taken: map[string]bool{}}
	for _, name := range reserved {
		n.taken[name] = true
	}
	return n
}

// own has the names of tools and prompts that are the server's own.
type own struct{ tools, prompts []string }

// give names a tool. What had to be changed to make it fit is told apart by a
// hash of the original, so that no upstream can take the name of another's or
// have its own changed by what else is there.
func (n *names) give(prefix, original string) (name string, ok bool) {
	name = prefix + clean(original)
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

// clean replaces the characters that a name may not have.
func clean(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-', r == '.':
			return r
		}
		return '_'
	}, name)
}

// hashOf is a short hash of a name.
func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:4])
}
