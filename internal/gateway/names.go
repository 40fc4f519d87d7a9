package gateway

import (
	"strings"

	"github.com/guideway-dev/guideway/internal/platform/digest"
)

// separator separates the upstream's name from the tool's name. It never occurs in an
// upstream's name, so that a name can be split in only one way.
const separator = "__"

const (
	// maxName is the maximum length of a name in MCP.
	maxName = 128
	// maxAdvertised is the maximum length of an advertised name. Model providers allow 64
	// characters, of which a client uses up to 15 for the prefix of this server, such as
	// "mcp__guideway__".
	maxAdvertised = 49
	// maxPrefix is the number of bytes of an upstream's prefix that every advertised name
	// of the upstream begins with.
	maxPrefix = maxAdvertised - len(separator) - hashLength
	// hashLength is the length of the result of hashOf.
	hashLength = 8
)

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

// assignNames assigns the advertised name and the full name to a tool or a prompt. ok is
// false if one of them is taken.
func (n *names) assignNames(prefix, original string) (name, full string, ok bool) {
	name, full = validName(prefix, original, maxAdvertised), validName(prefix, original, maxName)
	if n.taken[name] || n.taken[full] {
		return "", "", false
	}
	n.taken[name], n.taken[full] = true, true
	return name, full, true
}

// validName returns a valid name of at most limit bytes. A name that had to be changed gets
// a hash of the original, so that it does not depend on other names.
func validName(prefix, original string, limit int) string {
	name := prefix + replaceInvalid(original)
	if len(name) <= limit && name == prefix+original {
		return name
	}
	mark := "_" + hashOf(original)
	if len(prefix)+len(mark) > limit { // The name also loses the end of the prefix.
		mark = separator + hashOf(prefix+original)
	}
	return name[:min(len(name), limit-len(mark))] + mark
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
	return digest.Hex(text)[:8]
}
