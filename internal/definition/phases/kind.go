package phases

import (
	"embed"

	"github.com/guideway-dev/guideway/internal/definition/doc"
)

// Kind is what a document of the dialect is.
type Kind string

// The kinds.
const (
	KindWorkflow  Kind = "workflow"
	KindCondition Kind = "condition"
	KindState     Kind = "state"
	KindSkill     Kind = "skill"
	KindActivity  Kind = "activity"
)

// Kinds are all kinds.
func Kinds() []Kind {
	return []Kind{KindWorkflow, KindCondition, KindState, KindSkill, KindActivity}
}

// Guess tells the kind of a document by the members that only this kind has; ""
// where it has none of them.
func Guess(root *doc.Node) Kind {
	has := func(key string) bool { return root.Get(key) != nil }
	switch {
	case has("phases"), has("initialPhase"):
		return KindWorkflow
	case has("recognition"), has("problem"):
		return KindActivity
	case has("capability"):
		return KindSkill
	case has("workflowId") && has("currentPhase"):
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

//go:embed schema/*.schema.json
var schemas embed.FS

// Schema gives the published JSON Schema (draft-07) of a kind; nil where there is
// no such kind. It accepts what the kind's parser accepts, but for the rules that
// no schema can say.
func Schema(kind Kind) []byte {
	text, err := schemas.ReadFile("schema/" + string(kind) + ".schema.json")
	if err != nil {
		return nil
	}
	return text
}
