package machines

import (
	"fmt"
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
