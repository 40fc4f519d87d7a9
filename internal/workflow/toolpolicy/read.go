package toolpolicy

import (
	"maps"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway/internal/workflow/doc"
	"github.com/guideway-dev/guideway/internal/workflow/shape"
)

// Read reads the member tools of a document. It returns nil if the member is missing.
func Read(r *shape.Report, at shape.Place) *Policy {
	if !r.Object(at, "allow", "deny", "hold") {
		return nil
	}
	at = at.In("in tools " + at.Where)
	return &Policy{
		Allow: readRules(r, at.Key("allow")),
		Deny:  readRules(r, at.Key("deny")),
		Hold:  readRules(r, at.Key("hold")),
	}
}

// readRules reads a list of rules. An empty list is not nil, because an empty list of
// allowed calls allows none.
func readRules(r *shape.Report, at shape.Place) []Rule {
	if !r.Array(at, "a list of tools") {
		return nil
	}
	rules := make([]Rule, len(at.Node.Items))
	for i := range at.Node.Items {
		rules[i] = readRule(r, at.Index(i))
	}
	return rules
}

// readRule reads the name of a tool, or an object.
func readRule(r *shape.Report, at shape.Place) Rule {
	switch at.Node.Kind {
	case doc.String:
		return Rule{Tool: readPattern(r, at)}
	case doc.Object:
	default:
		r.WrongType(at, `the name of a tool, or an object with tool, annotations and arguments`)
		return Rule{}
	}
	at, _ = r.Element(at, "tool", "annotations", "arguments")
	r.Require(at, "tool")
	return Rule{
		Tool:        readPattern(r, at.Key("tool")),
		Annotations: readAnnotations(r, at.Key("annotations")),
		Arguments:   readArguments(r, at.Key("arguments")),
	}
}

// readPattern reads a text in which * matches any text.
func readPattern(r *shape.Report, at shape.Place) string {
	if at.Node != nil && at.Node.Kind == doc.String && at.Node.Text == "" {
		r.Errorf(at, shape.CodeLength, "write * to match any text", "Field '%s' %s is empty: an empty pattern matches no call.", at.Name, at.Where)
	}
	return r.Text(at, 0, 0)
}

// readAnnotations reads the hints of a rule.
func readAnnotations(r *shape.Report, at shape.Place) map[string]bool {
	if !r.Open(at) {
		return nil
	}
	known := slices.Sorted(maps.Keys(Annotations))
	hints := make(map[string]bool, len(at.Node.Members))
	for i := range at.Node.Members {
		key := at.Member(i)
		if _, ok := Annotations[key.Name]; !ok {
			fix := r.Suggest(key.Name, known, "write one of: "+strings.Join(known, ", "))
			if name, hint := strings.CutSuffix(key.Name, "Hint"); hint && slices.Contains(known, name) {
				fix = "write '" + name + "'"
			}
			r.Errorf(key, shape.CodeUnexpected, fix, "Unknown annotation '%s' %s.", key.Name, at.Where)
			continue
		}
		hints[key.Name] = r.Flag(at.Key(key.Name))
	}
	return hints
}

// readArguments reads the patterns of arguments.
func readArguments(r *shape.Report, at shape.Place) map[string]string {
	if !r.Open(at) {
		return nil
	}
	patterns := make(map[string]string, len(at.Node.Members))
	for i := range at.Node.Members {
		key := at.Member(i)
		switch {
		case key.Name == "":
			r.Errorf(key, shape.CodeLength, "write the name of the argument, or its JSON pointer, such as /options/force", "The name of an argument %s is empty.", at.Where)
		case !isPointerOrName(key.Name):
			r.Errorf(key, shape.CodePattern, "write a ~ in a name as ~0 and a / in a name as ~1: /files/a~0b is the member a~b of files", "The argument %s %s is not a valid JSON pointer.", shape.Quote(key.Name), at.Where)
		}
		patterns[key.Name] = readPattern(r, at.Key(key.Name))
	}
	return patterns
}

// isPointerOrName reports whether the text is a valid JSON pointer, or does not begin with /.
func isPointerOrName(text string) bool {
	if !strings.HasPrefix(text, "/") {
		return true
	}
	return !strings.Contains(strings.NewReplacer("~0", "", "~1", "").Replace(text), "~")
}
