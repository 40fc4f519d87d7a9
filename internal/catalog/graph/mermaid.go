package graph

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
)

func itoa(n int) string { return strconv.Itoa(n) }

// Mermaid writes the graph as a Mermaid flowchart. Texts of the document stand
// in quotes, with everything escaped that Mermaid would take for its own
// language, for Markdown, for HTML or for a formula; so they cannot leave their
// label.
func (g *Graph) Mermaid() string {
	var b strings.Builder
	b.WriteString("flowchart TB\n")
	g.write(&b, "", "  ")
	return b.String()
}

// write writes what is in a frame: its nodes, the frames inside of it, and its
// edges, which Mermaid wants behind the places that they name.
func (g *Graph) write(b *strings.Builder, frame, indent string) {
	for _, n := range g.Nodes {
		if n.Frame == frame {
			b.WriteString(indent + n.ID + n.shape() + "\n")
		}
	}
	for _, f := range g.Frames {
		if f.Frame != frame {
			continue
		}
		label := escape(f.Label)
		if f.Extent != "" {
			label += "<br/>" + escape(f.Extent)
		}
		b.WriteString(indent + "subgraph " + f.ID + "[\"" + label + "\"]\n")
		b.WriteString(indent + "  direction TB\n")
		g.write(b, f.ID, indent+"  ")
		b.WriteString(indent + "end\n")
	}
	g.writeEdges(b, frame, indent)
}

func (g *Graph) writeEdges(b *strings.Builder, frame, indent string) {
	for _, e := range g.Edges {
		if e.Frame != frame {
			continue
		}
		arrow := " --> "
		if e.Skip || e.Back {
			arrow = " -.-> "
		}
		label := ""
		if e.Label != "" {
			label = "|\"" + escape(e.Label) + "\"| "
		}
		b.WriteString(indent + e.From + arrow + label + e.To + "\n")
	}
}

// shape is the node's form with its label.
func (n Node) shape() string {
	label := "\"" + escape(n.Label) + "\""
	switch n.Kind {
	case KindStart, KindEnd:
		return "([" + label + "])"
	case KindGate:
		return "{{" + label + "}}"
	case KindChoice:
		return "{" + label + "}"
	default:
		return "[" + label + "]"
	}
}

// special are the characters that mean something to Mermaid or to what it hands
// labels to: HTML, Markdown and formulas.
const special = "\"#<>&`$%*\\|~@"

// escape writes a text so that it stands in a label as it is. An empty label
// would be drawn as the node's id, so it becomes a space.
func escape(text string) string {
	text = strings.Join(strings.FieldsFunc(text, unicode.IsSpace), " ")
	var b strings.Builder
	for i, r := range text {
		switch {
		case unicode.IsControl(r) || r == unicode.ReplacementChar || unicode.Is(unicode.Bidi_Control, r):
		case strings.ContainsRune(special, r) || means(text, i, r):
			b.WriteString("#" + itoa(int(r)) + ";")
		default:
			b.WriteRune(r)
		}
	}
	if b.Len() == 0 {
		return " "
	}
	return b.String()
}

// means says whether a character that mostly is harmless means something where
// it stands.
func means(text string, i int, r rune) bool {
	switch r {
	case ':':
		// "style x:#…;" loses its end, "fa:fa-x" becomes an icon, and an
		// address a link.
		return slices.ContainsFunc([]string{"style", "classDef", ":fa-", "://"}, func(risk string) bool {
			return strings.Contains(text, risk)
		})
	case '_': // emphasis, but not inside of a word
		return i == 0 || i == len(text)-1 || !isWord(text[i-1]) || !isWord(text[i+1])
	case '.':
		if strings.HasSuffix(strings.ToLower(text[:i]), "www") {
			return true // a link
		}
		fallthrough
	case '-', '+', ')', '=':
		// The item of a list or the line under a heading, which Mermaid
		// refuses to draw.
		return strings.Trim(text[:i], "0123456789-+=") == ""
	default:
		return false
	}
}

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}
