package graph

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
)

func formatInt(n int) string { return strconv.Itoa(n) }

// Mermaid returns the graph as a Mermaid flowchart. Texts of the document are quoted, and
// everything is escaped or removed that Mermaid would read as its own language, Markdown,
// HTML or a formula; so they cannot leave their label.
func (g *Graph) Mermaid() string {
	var b strings.Builder
	b.WriteString("flowchart TB\n")
	g.writeFrame(&b, "", "  ")
	return b.String()
}

// writeFrame writes the content of a frame: its nodes, the frames inside, and its edges,
// which Mermaid requires after the nodes that they name.
func (g *Graph) writeFrame(b *strings.Builder, frame, indent string) {
	for _, n := range g.Nodes {
		if n.Frame == frame {
			b.WriteString(indent + n.ID + n.shapeOf() + "\n")
		}
	}
	for _, f := range g.Frames {
		if f.Frame != frame {
			continue
		}
		label := escapeLabel(f.Label)
		if f.Extent != "" {
			label += "<br/>" + escapeLabel(f.Extent)
		}
		b.WriteString(indent + "subgraph " + f.ID + "[\"" + label + "\"]\n")
		b.WriteString(indent + "  direction TB\n")
		g.writeFrame(b, f.ID, indent+"  ")
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
			label = "|\"" + escapeLabel(e.Label) + "\"| "
		}
		b.WriteString(indent + e.From + arrow + label + e.To + "\n")
	}
}

// shapeOf returns the shape of a node with its label.
func (n Node) shapeOf() string {
	label := "\"" + escapeLabel(n.Label) + "\""
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

// special are the characters with a meaning for Mermaid, or for HTML, Markdown and formulas
// in labels.
const special = "\"#<>&`$%*\\|~@"

// escapeLabel escapes a text for a label. An empty label would be drawn as the node's id,
// so it becomes a space.
func escapeLabel(text string) string {
	text = strings.Join(strings.FieldsFunc(text, unicode.IsSpace), " ")
	var b strings.Builder
	for i, r := range text {
		switch {
		case unicode.IsControl(r) || r == unicode.ReplacementChar || unicode.Is(unicode.Bidi_Control, r):
		case strings.ContainsRune(special, r) || hasMeaning(text, i, r):
			b.WriteString("#" + formatInt(int(r)) + ";")
		default:
			b.WriteRune(r)
		}
	}
	if b.Len() == 0 {
		return " "
	}
	return b.String()
}

// hasMeaning reports whether a usually harmless character has a meaning at its place.
func hasMeaning(text string, i int, r rune) bool {
	switch r {
	case ':':
		// "style x:#…;" is truncated, "fa:fa-x" becomes an icon, and a URL a link.
		return slices.ContainsFunc([]string{"style", "classDef", ":fa-", "://"}, func(risk string) bool {
			return strings.Contains(text, risk)
		})
	case '_': // emphasis, except inside a word
		return i == 0 || i == len(text)-1 || !isWord(text[i-1]) || !isWord(text[i+1])
	case '.':
		if strings.HasSuffix(strings.ToLower(text[:i]), "www") {
			return true // a link
		}
		fallthrough
	case '-', '+', ')', '=':
		// A list item or the underline of a heading, which Mermaid refuses to draw.
		return strings.Trim(text[:i], "0123456789-+=") == ""
	default:
		return false
	}
}

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}
