package definition

import (
	"fmt"
	"slices"
	"strings"
)

// Mermaid returns a state diagram with the certain and possible transitions, from a static
// analysis of the handlers.
func (d *Definition) Mermaid() string {
	code := newScriptIndex(d.Script)
	var b strings.Builder
	b.WriteString("stateDiagram-v2\n")
	ids := map[string]string{}
	for i := range d.States {
		ids[d.States[i].Name] = fmt.Sprintf("s%d", i)
	}
	for i := range d.States {
		if s := &d.States[i]; s.Name != StateStop {
			fmt.Fprintf(&b, "  state \"%s\" as %s\n", strings.NewReplacer(`"`, "'", "\n", " ").Replace(stateLabel(s)), ids[s.Name])
		}
	}
	fmt.Fprintf(&b, "  [*] --> %s\n", ids[StateStart])
	for i := range d.States {
		s := &d.States[i]
		if s.Name == StateStop {
			continue
		}
		following, _ := d.nextStates(s, code)
		for _, name := range following {
			to := ids[name]
			if name == StateStop {
				to = "[*]"
			}
			fmt.Fprintf(&b, "  %s --> %s\n", ids[s.Name], to)
		}
	}
	return b.String()
}

// Edge is a possible transition between two states.
type Edge struct {
	From string `json:"from"`
	To   string `json:"to"`
	// Sure is set if the handlers of From return constant state names; otherwise an edge
	// may be missing or impossible.
	Sure bool `json:"sure"`
	// Failed is set if the edge belongs to the error handler.
	Failed bool `json:"failed,omitempty"`
}

// Edges returns the possible transitions in document order, from a static analysis of the
// handlers.
func (d *Definition) Edges() []Edge {
	code := newScriptIndex(d.Script)
	ways := []Edge{}
	for i := range d.States {
		s := &d.States[i]
		if s.Name == StateStop {
			continue
		}
		following, sure := d.nextStates(s, code)
		onError, _ := code.returnedTexts(s.OnError)
		usual, _ := code.returnedTexts(s.Transition)
		for _, name := range following {
			failed := slices.Contains(onError, name) && !slices.Contains(usual, name) && s.Next != name
			ways = append(ways, Edge{From: s.Name, To: name, Sure: sure, Failed: failed})
		}
	}
	return ways
}

// stateLabel describes a state.
func stateLabel(s *State) string {
	switch {
	case s.Agent != "":
		return s.Name + " (" + s.Agent + ")"
	case s.Ask != nil:
		return s.Name + " (waits for " + s.Ask.Name + ")"
	case s.Sub != nil:
		return s.Name + " (machine " + s.Sub.Machine + ")"
	default:
		return s.Name
	}
}
