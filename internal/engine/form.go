package engine

import (
	"strings"

	"github.com/guideway-dev/guideway/internal/platform/lists"
)

// Field is an argument of the next call that only the caller can fill in. A suggested call
// never has a value for it: a copied suggestion must not pass a check.
type Field struct {
	// Name is the argument, or the path of a member, such as "answer.optionId".
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	// Type is the JSON type, if only one is accepted and it is not a string.
	Type string `json:"type,omitempty"`
	// Choices are the accepted values, if no other value is accepted.
	Choices []any `json:"choices,omitempty"`
	// Optional is set if the call is complete without the field.
	Optional bool `json:"optional,omitempty"`
}

// The descriptions of the fields that do not depend on the definition. A caller that sends
// one of them back has not filled in the field.
const (
	describeOutput   = "the step's full result"
	describeNotes    = "the result of each check"
	describeOption   = "the user's choice"
	describeBranch   = "the option that applies"
	describeNote     = "the user's words"
	describeDecline  = "true if the user declines, instead of an option"
	describeVariable = "the actual value"

	// DescribeSame is the description of an argument that a suggested call leaves out because
	// it is long.
	DescribeSame = "the same value as in the refused call, which stored nothing"
	// DescribeOutputArgument, DescribeNotesArgument and DescribeContextArgument describe the
	// arguments of workflow_continue in its schema.
	DescribeOutputArgument  = "The step's full output"
	DescribeNotesArgument   = "What was done, decided, left open"
	DescribeContextArgument = "Variables to set"
)

// Fields returns the arguments that the caller must fill in for the next call at a
// position, and the optional ones, which have Optional set. A position that an agent cannot
// continue has no fields.
func (pos *Position) Fields() []Field {
	if pos.DeadEnd {
		return nil
	}
	switch pos.Kind {
	case PositionStep:
		return pos.stepFields()
	case PositionGate:
		if pos.Person {
			return nil
		}
		return pos.answerFields()
	case PositionContext:
		return needFields(pos.Needs)
	default:
		return nil
	}
}

func (pos *Position) stepFields() []Field {
	fields := []Field{{Name: "output", Description: describeOutput}}
	if pos.NeedsNotes {
		fields = append(fields, Field{Name: "notes", Description: describeNotes})
	}
	return append(fields, needFields(pos.Sets)...)
}

func (pos *Position) answerFields() []Field {
	option := Field{Name: "answer.optionId", Description: describeOption}
	if pos.Branches {
		option.Description = describeBranch
	}
	for _, o := range pos.Options {
		option.Choices = append(option.Choices, o.ID)
	}
	fields := []Field{option}
	if pos.Declinable {
		fields = append(fields, Field{Name: "answer.decline", Type: "boolean", Description: describeDecline, Optional: true})
	}
	return append(fields, Field{Name: "answer.note", Description: describeNote, Optional: true})
}

func needFields(needs []Need) []Field {
	fields := make([]Field, len(needs))
	for i, n := range needs {
		about := n.Description
		if about == "" {
			about = describeVariable
			if len(n.Tests) > 0 {
				about += "; the workflow tests: " + strings.Join(n.Tests, "; ")
			}
		}
		fields[i] = Field{Name: "context." + n.Variable, Description: about, Type: n.Type, Choices: n.Allowed}
		if len(n.Allowed) > 0 && !n.Exhaustive {
			fields[i].Choices, fields[i].Description = nil, about+"; such as "+JoinValues(n.Allowed)+", or a different value"
		}
	}
	return fields
}

// JoinValues lists values, such as the choices of a field, for a sentence.
func JoinValues(values []any) string {
	texts := lists.Map(values, describeValue)
	return strings.Join(texts, ", ")
}
