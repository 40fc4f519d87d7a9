package phases

import (
	"embed"
	"path/filepath"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway/internal/workflow/doc"
	"github.com/guideway-dev/guideway/internal/workflow/shape"
)

// Kind is the kind of a document of the dialect.
type Kind = shape.Kind

// The kinds.
const (
	KindWorkflow  Kind = "workflow"
	KindCondition Kind = "condition"
	KindState     Kind = "state"
	KindSkill     Kind = "skill"
	KindActivity  Kind = "activity"
)

// Kinds returns all kinds.
func Kinds() []Kind {
	return []Kind{KindWorkflow, KindCondition, KindState, KindSkill, KindActivity}
}

// Guess returns the kind of a document by the members that only this kind has, or "".
func Guess(root *doc.Node) Kind {
	has := func(keys ...string) bool {
		return slices.ContainsFunc(keys, func(key string) bool { return root.Get(key) != nil })
	}
	switch {
	case has("phases", "initialPhase"):
		return KindWorkflow
	case has("recognition", "problem", "context_to_preserve"):
		return KindActivity
	case has("capability", "execution_pattern", "architecture", "matching", "interpretation"):
		return KindSkill
	case has("currentPhase", "completedPhases", "checkpointResponses", "decisionOutcomes"):
		return KindState
	}
	if kind := root.Get("type"); kind != nil && !has("id") {
		switch kind.Text {
		case "simple", "and", "or", "not":
			return KindCondition
		}
	}
	return ""
}

// KindAt returns the kind of a document by its path: a skill or an activity in the
// directory layout (see Entry), for any root; "" otherwise.
func KindAt(file string) Kind {
	const deep = 3
	parts := strings.Split(filepath.ToSlash(file), "/")
	entry, ok := Locate(strings.Join(parts[max(0, len(parts)-deep):], "/"))
	switch {
	case ok && entry.Kind == EntrySkill:
		return KindSkill
	case ok && entry.Kind == EntryActivity:
		return KindActivity
	default:
		return ""
	}
}

//go:embed schema/*.schema.json
var schemas embed.FS

// Schema returns the published JSON Schema (draft-07) of a kind, or nil for an unknown
// kind. It accepts every document that the parser of the kind accepts; the parser also
// checks rules that a schema cannot express.
func Schema(kind Kind) []byte {
	text, err := schemas.ReadFile("schema/" + string(kind) + ".schema.json")
	if err != nil {
		return nil
	}
	return text
}
