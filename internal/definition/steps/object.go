package steps

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/guideway-dev/guideway/internal/definition/doc"
)

// object checks that the value is an object of known members. False means that
// there is nothing to read.
func (p *parser) object(at place, known ...string) bool {
	if at.node == nil {
		return false
	}
	if at.node.Kind != doc.Object {
		p.wrongType(at, "an object")
		return false
	}
	p.closed(at, "", known)
	return true
}

// element is object for an element of a list: what is wrong inside it is said to
// be in the element.
func (p *parser) element(at place, known ...string) (place, bool) {
	inner := at.in(fmt.Sprintf("in %s %s", at.name, at.where))
	if at.node.Kind != doc.Object {
		p.wrongType(at, "an object")
		return inner, false
	}
	return inner, p.object(inner, known...)
}

// closed reports the members of an object that are not known. The hint replaces
// the guess at what was meant.
func (p *parser) closed(at place, hint string, known []string) {
	for i := range at.node.Members {
		m := &at.node.Members[i]
		if slices.Contains(known, m.Key) {
			continue
		}
		if p.full() {
			p.dropped++
			continue
		}
		key := place{line: m.Line, column: m.Column, ptr: at.pointer(), last: m.Key, keyed: true}
		fix := hint
		if guess := closest(m.Key, known); guess != "" {
			fix = fmt.Sprintf("did you mean '%s'?", guess)
		} else if fix == "" {
			fix = "remove it, or use one of: " + strings.Join(known, ", ")
		}
		p.errorf(key, CodeUnexpected, fix, "Unexpected property '%s' found %s. The steps dialect has no such property here.", m.Key, at.where)
	}
}

// require reports the members that are missing.
func (p *parser) require(at place, keys ...string) {
	for _, key := range keys {
		if at.node.Get(key) == nil {
			p.missing(at, key)
		}
	}
}

// missing reports a member that is missing.
func (p *parser) missing(at place, key string) {
	fix := fmt.Sprintf("add \"%s\": %s", key, sample(key))
	for i := range min(len(at.node.Members), maxNames) {
		if closest(at.node.Members[i].Key, []string{key}) != "" {
			fix = fmt.Sprintf("rename '%s' to '%s'", at.node.Members[i].Key, key)
		}
	}
	p.errorf(at, CodeRequired, fix, "Missing required field '%s' %s. This field is mandatory and must be provided.", key, at.where)
}

// sample is what a required member may look like.
func sample(key string) string {
	switch key {
	case "version":
		return `"0.1.0"`
	case "id":
		return `"an-id"`
	case "steps", "body":
		return "[...]"
	case "loop", "args":
		return "{...}"
	case "maxIterations":
		return "10"
	default:
		return `"..."`
	}
}

// text reads a member that is a string of min to max characters; zero is no
// bound.
func (p *parser) text(at place, low, high int) string {
	if at.node == nil {
		return ""
	}
	if at.node.Kind != doc.String {
		p.wrongType(at, "a string")
		return ""
	}
	// A text of fewer bytes than allowed characters need not be counted.
	size := len(at.node.Text)
	if size >= low && (high == 0 || size <= high) && (low <= 1 || size > 4*low) {
		return at.node.Text
	}
	switch size = utf8.RuneCountInString(at.node.Text); {
	case size < low && size == 0:
		p.errorf(at, CodeLength, emptyFix(at.name), "Field '%s' %s is empty.", at.name, at.where)
	case size < low:
		p.errorf(at, CodeLength, "write more", "Field '%s' %s has %s; at least %d are needed.", at.name, at.where, characters(size), low)
	case high > 0 && size > high:
		p.errorf(at, CodeLength, tooLongFix(at.name), "Field '%s' %s has %d characters; at most %d are allowed.", at.name, at.where, size, high)
	}
	return at.node.Text
}

// characters counts them in words.
func characters(n int) string {
	if n == 1 {
		return "1 character"
	}
	return fmt.Sprintf("%d characters", n)
}

// emptyFix says how to mend an empty text.
func emptyFix(name string) string {
	switch {
	case strings.HasSuffix(name, "]"):
		return "remove the entry, or write it"
	case name == "agentRole":
		return "write it, or leave the field out"
	default:
		return "write it"
	}
}

// tooLongFix says how to mend a text that is too long.
func tooLongFix(name string) string {
	switch {
	case name == "prompt":
		return "split the step in two, or move what is not needed at once into another step"
	case strings.HasPrefix(name, "metaGuidance"):
		return "split it into several entries"
	default:
		return "shorten it"
	}
}

// id reads a member that is the id of a workflow or step.
func (p *parser) id(at place) string {
	text := p.text(at, 3, 64)
	if at.node != nil && at.node.Kind == doc.String && text != "" && !isID(text) {
		fix := "use small letters, digits and hyphens only"
		if better := toID(text); len(better) >= 3 {
			fix = fmt.Sprintf("write it as '%s'", better)
		}
		p.errorf(at, CodePattern, fix, "Field '%s' %s has the value %s; an id is made of small letters, digits and hyphens.", at.name, at.where, quote(text))
	}
	return text
}

// identifier reads a member that names a variable or function.
func (p *parser) identifier(at place) string {
	if at.node == nil {
		return ""
	}
	text := p.text(at, 0, 0)
	if at.node.Kind == doc.String && !isIdentifier(text) {
		p.errorf(at, CodePattern, "use letters, digits and underscores, and do not begin with a digit", "Field '%s' %s has the value %s, which is not a name.", at.name, at.where, quote(text))
	}
	return text
}

// texts reads a member that is a list of strings of low to high characters each.
func (p *parser) texts(at place, low, high int) []string {
	if !p.array(at, "a list of texts") {
		return nil
	}
	out := make([]string, 0, len(at.node.Items))
	for i := range at.node.Items {
		out = append(out, p.text(at.index(i), low, high))
	}
	return out
}

// array checks that the value is a list. False means that there is nothing to
// read.
func (p *parser) array(at place, want string) bool {
	if at.node == nil {
		return false
	}
	if at.node.Kind != doc.Array {
		p.wrongType(at, want)
		return false
	}
	return true
}

// unique reports the elements of a list that occur twice.
func (p *parser) unique(at place) {
	if at.node == nil || at.node.Kind != doc.Array || len(at.node.Items) < 2 {
		return
	}
	seen := make(map[string]int, len(at.node.Items))
	for i, item := range at.node.Items {
		key := string(doc.Canonical(item))
		if first, ok := seen[key]; ok {
			p.errorf(at.index(i), CodeUnique, "remove one of the two", "Field '%s' %s repeats element %d.", at.index(i).name, at.where, first)
			continue
		}
		seen[key] = i
	}
}

// flag reads a member that is true or false.
func (p *parser) flag(at place) bool {
	if at.node == nil {
		return false
	}
	if at.node.Kind != doc.Bool {
		p.wrongType(at, "true or false")
		return false
	}
	return at.node.Flag
}

// choice reads a member that is one of a few words.
func (p *parser) choice(at place, code string, words ...string) string {
	if at.node == nil {
		return ""
	}
	text := p.text(at, 0, 0)
	if at.node.Kind == doc.String && !slices.Contains(words, text) {
		fix := "write one of: " + strings.Join(words, ", ")
		if guess := closest(text, words); guess != "" {
			fix = fmt.Sprintf("did you mean '%s'?", guess)
		}
		p.errorf(at, code, fix, "Field '%s' %s has the value %s. It must be one of: %s.", at.name, at.where, quote(text), strings.Join(words, ", "))
	}
	return text
}
