package results

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/guideway-dev/guideway/internal/gateway/jsonrpc"
	"github.com/guideway-dev/guideway/internal/platform/textpart"
)

const (
	// headBytes is the number of bytes of the largest part that a summary has.
	headBytes = 1500
	// maxParts is the number of parts that a summary lists.
	maxParts = 20
	// shapeDepth, shapeMembers and shapeBytes limit the description of a value.
	shapeDepth, shapeMembers, shapeBytes = 4, 20, 600
)

// Summarize returns what a client gets instead of a large result: its start, the shape of its
// parts, and how to read the rest.
func Summarize(result []byte, ref string, expiry time.Time) (string, error) {
	parts, err := Parts(result)
	if err != nil {
		return "", err
	}
	head := largest(parts)
	var out strings.Builder
	until := ""
	if !expiry.IsZero() {
		until = " until " + expiry.UTC().Format(time.DateOnly)
	}
	fmt.Fprintf(&out, "The result has %d bytes. It is stored as %s%s.\n\nParts:\n", len(result), ref, until)
	for _, p := range parts[:min(len(parts), maxParts)] {
		lines := "1 line"
		if more := strings.Count(p.Text, "\n"); more > 0 {
			lines = fmt.Sprintf("%d lines", more+1)
		}
		fmt.Fprintf(&out, "- %s: %s, %d bytes, %s", p.Name, p.Kind, len(p.Text), lines)
		if trimmed := strings.TrimSpace(p.Text); strings.HasPrefix(trimmed, "{") || strings.HasPrefix(trimmed, "[") {
			if json.Valid([]byte(trimmed)) {
				out.WriteString(", JSON: " + Shape(json.RawMessage(trimmed)))
			}
		}
		out.WriteString("\n")
	}
	if len(parts) > maxParts {
		fmt.Fprintf(&out, "- more parts: %d\n", len(parts)-maxParts)
	}
	fmt.Fprintf(&out, "\nRead more with result_read: {\"ref\": %q, \"search\": \"words\"}, {\"ref\": %q, \"lines\": \"1-50\"}, {\"ref\": %q, \"path\": \"/items/0\"}.\n\nStart of %s:\n%s\n",
		ref, ref, ref, head.Name, textpart.Clip(head.Text, headBytes))
	return out.String(), nil
}

// Shape describes a valid JSON value by its members and types.
func Shape(value json.RawMessage) string { return textpart.Clip(shapeOf(value, 0), shapeBytes) }

func shapeOf(value json.RawMessage, depth int) string {
	switch value[0] {
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	case '[':
		var items []json.RawMessage
		_ = json.Unmarshal(value, &items) // The value is valid.
		if len(items) == 0 || depth == shapeDepth {
			return fmt.Sprintf("[%d items]", len(items))
		}
		return fmt.Sprintf("[%d × %s]", len(items), shapeOf(items[0], depth+1))
	case '{':
		var shown []string
		count := 0
		err := jsonrpc.Each(value, func(key string, member json.RawMessage) error {
			if count++; count <= shapeMembers && depth < shapeDepth {
				shown = append(shown, key+": "+shapeOf(member, depth+1))
			}
			return nil
		})
		if err != nil { // A member occurs twice.
			return "{…}"
		}
		if count > len(shown) {
			shown = append(shown, fmt.Sprintf("%d more", count-len(shown)))
		}
		return "{" + strings.Join(shown, ", ") + "}"
	}
	return "number"
}
