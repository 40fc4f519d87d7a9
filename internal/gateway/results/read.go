package results

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/gateway/jsonrpc"
	"github.com/guideway-dev/guideway/internal/platform/textpart"
)

// Part is a readable part of a result: the text of a block of content, or another value as
// JSON.
type Part struct {
	// Name is "content[0]", or the name of a member of the result.
	Name string
	// Kind is the type of the block, or "json".
	Kind string
	Text string
}

// Parts returns the parts of a result in their order.
func Parts(result []byte) ([]Part, error) {
	var parts []Part
	err := jsonrpc.Each(result, func(key string, value json.RawMessage) error {
		if key != "content" {
			if key == "structuredContent" || key == "_meta" {
				parts = append(parts, Part{key, "json", string(value)})
			}
			return nil
		}
		var blocks []json.RawMessage
		if err := json.Unmarshal(value, &blocks); err != nil {
			return errors.New("the content of the result is not a list")
		}
		for i, block := range blocks {
			parts = append(parts, partOf(fmt.Sprintf("content[%d]", i), block))
		}
		return nil
	})
	return parts, err
}

// partOf returns a block of content as a part.
func partOf(name string, block json.RawMessage) Part {
	var known struct {
		Type     string  `json:"type"`
		Text     *string `json:"text"`
		MIMEType string  `json:"mimeType"`
		Resource struct {
			Text *string `json:"text"`
		} `json:"resource"`
	}
	_ = json.Unmarshal(block, &known) // A block of another form is a part without a type.
	switch {
	case known.Text != nil:
		return Part{name, "text", *known.Text}
	case known.Resource.Text != nil:
		return Part{name, "resource", *known.Resource.Text}
	case known.MIMEType != "":
		return Part{name, known.Type + " " + known.MIMEType, string(block)}
	}
	return Part{name, known.Type, string(block)}
}

// largest returns the largest part.
func largest(parts []Part) Part {
	var best Part
	for _, p := range parts {
		if len(p.Text) > len(best.Text) {
			best = p
		}
	}
	return best
}

// Query selects a part of a result. The zero Query selects the start of the largest part.
type Query struct {
	Ref string `json:"ref"`
	// Part is the name of a part; empty means the largest one.
	Part string `json:"part"`
	// Path is a JSON Pointer (RFC 6901) into a part that is JSON.
	Path string `json:"path"`
	// Lines is the number of a line or a range, such as "120-180", from 1.
	Lines string `json:"lines"`
	// Search is text to find: lines that contain it are returned, with their numbers.
	Search string `json:"search"`
	// Offset is the first byte of the selection to return.
	Offset int `json:"offset"`
}

// MaxAnswer is the maximum number of bytes that Read returns.
const MaxAnswer = 10_000

// Answer is a selection of a result.
type Answer struct {
	Text string
	// From and Size are the offset of Text in the selection and the size of the selection, in
	// bytes.
	From, Size int
}

// Read returns the bytes that a query selects, at most MaxAnswer.
func Read(result []byte, q Query) (*Answer, error) {
	parts, err := Parts(result)
	if err != nil {
		return nil, err
	}
	part := largest(parts)
	if q.Part != "" {
		var names []string
		found := false
		for _, p := range parts {
			names = append(names, p.Name)
			if p.Name == q.Part {
				part, found = p, true
			}
		}
		if !found {
			return nil, guideway.Errorf(guideway.CodeInvalid, "the result has no part %.60q", q.Part).WithFix("use one of: %s", strings.Join(names, ", "))
		}
	}
	text := part.Text
	if q.Path != "" {
		if text, err = valueAt(part, q.Path); err != nil {
			return nil, err
		}
	}
	if text, err = selectLines(text, q); err != nil {
		return nil, err
	}
	if q.Offset < 0 || q.Offset > len(text) {
		return nil, guideway.Errorf(guideway.CodeInvalid, "offset is %d, but the selection has %d bytes", q.Offset, len(text)).WithFix("use a number from 0 to %d", len(text))
	}
	return &Answer{Text: textpart.Clip(text[q.Offset:], MaxAnswer), From: q.Offset, Size: len(text)}, nil
}

// selectLines returns the lines of a text that a query selects. A search within a range of
// lines finds only those.
func selectLines(text string, q Query) (string, error) {
	if q.Lines == "" && q.Search == "" {
		return text, nil
	}
	lines, first := textpart.SplitLines(text, math.MaxInt), 1
	if q.Lines != "" {
		from, to, err := textpart.ParseRange(q.Lines, len(lines))
		if err != nil {
			return "", err
		}
		lines, first = lines[from-1:to], from
	}
	if q.Search != "" {
		found, err := textpart.FindLines(lines, first, q.Search)
		return strings.Join(found, ""), err
	}
	return strings.Join(lines, ""), nil
}

// valueAt returns the bytes of the value at a JSON Pointer; of a string, its text.
func valueAt(part Part, pointer string) (string, error) {
	value := json.RawMessage(strings.TrimSpace(part.Text))
	if !json.Valid(value) {
		return "", guideway.Errorf(guideway.CodeInvalid, "the part %s is not JSON, so path cannot be used", part.Name).WithFix("use lines or search")
	}
	if !strings.HasPrefix(pointer, "/") {
		return "", guideway.Errorf(guideway.CodeInvalid, "the path %.60q is not a JSON Pointer", pointer).WithFix("use a JSON Pointer, such as /items/0/name")
	}
	at := ""
	for token := range strings.SplitSeq(pointer[1:], "/") {
		key := strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
		next, kind := childOf(value, key)
		if next == nil {
			return "", guideway.Errorf(guideway.CodeInvalid, "the path %.200q does not exist: %s at %q has no %.60q", pointer, kind, at, key).
				WithFix("use a path that exists: in %s, the value at %q is %s", part.Name, at, Shape(value))
		}
		value, at = next, at+"/"+token
	}
	if text := ""; value[0] == '"' && json.Unmarshal(value, &text) == nil {
		return text, nil
	}
	return string(value), nil
}

// childOf returns a member of an object or an item of a list, nil if none exists, and a
// phrase that describes the parent in an error.
func childOf(value json.RawMessage, key string) (child json.RawMessage, kind string) {
	switch value[0] {
	case '{':
		var members map[string]json.RawMessage
		_ = json.Unmarshal(value, &members) // The value is valid.
		return members[key], "the object"
	case '[':
		var items []json.RawMessage
		_ = json.Unmarshal(value, &items) // The value is valid.
		i, err := strconv.Atoi(key)
		if err != nil || i < 0 || i >= len(items) {
			return nil, fmt.Sprintf("the list of length %d", len(items))
		}
		return items[i], "the list"
	}
	return nil, "the value"
}
