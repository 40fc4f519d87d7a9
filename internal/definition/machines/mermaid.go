package machines

import (
	"fmt"
	"slices"
	"strings"
)

// Mermaid draws the states: those that a state leads to for sure, or may, as far
// as its handlers tell without being run.
func (d *Definition) Mermaid() string {
	code := newScript(d.Script)
	var b strings.Builder
	b.WriteString("stateDiagram-v2\n")
	ids := map[string]string{}
	for i := range d.States {
		ids[d.States[i].Name] = fmt.Sprintf("s%d", i)
	}
	for i := range d.States {
		if s := &d.States[i]; s.Name != StateStop {
			fmt.Fprintf(&b, "  state \"%s\" as %s\n", strings.NewReplacer(`"`, "'", "\n", " ").Replace(label(s)), ids[s.Name])
		}
	}
	fmt.Fprintf(&b, "  [*] --> %s\n", ids[StateStart])
	for i := range d.States {
		s := &d.States[i]
		if s.Name == StateStop {
			continue
		}
		following, _ := d.next(s, code)
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

// Way is a state that may follow another one.
type Way struct {
	From string `json:"from"`
	To   string `json:"to"`
	// Sure says that the handlers of From name all that may follow; otherwise a
	// way may be missing, or never be taken.
	Sure bool `json:"sure"`
	// Failed says that the way is the error handler's.
	Failed bool `json:"failed,omitempty"`
}

// Ways are the states that may follow each other, in the order of the document, as
// far as the handlers tell without being run.
func (d *Definition) Ways() []Way {
	code := newScript(d.Script)
	ways := []Way{}
	for i := range d.States {
		s := &d.States[i]
		if s.Name == StateStop {
			continue
		}
		following, sure := d.next(s, code)
		onError, _ := code.answers(s.OnError)
		usual, _ := code.answers(s.Transition)
		for _, name := range following {
			failed := slices.Contains(onError, name) && !slices.Contains(usual, name) && s.Next != name
			ways = append(ways, Way{From: s.Name, To: name, Sure: sure, Failed: failed})
		}
	}
	return ways
}

// label says what a state does.
func label(s *State) string {
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
