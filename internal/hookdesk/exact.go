package hookdesk

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/guideway-dev/guideway"
	"go.yaml.in/yaml/v3"
)

// A graph means the numbers that scripts have, of 53 bits, and that is what a
// browser edits. A file may have longer ones, and a save must not change what
// nobody has touched.

// restored is a graph as it was sent, with the numbers of the file put back that
// rounding alone has changed. A number that may have been rounded and cannot be
// told to be the same one is refused.
func restored(was []byte, graph json.RawMessage) (json.RawMessage, error) {
	before := written(was)
	if len(inexact(before)) == 0 {
		return graph, nil
	}
	after, ok := decoded(graph)
	if !ok {
		return graph, nil // it is no JSON, which is said where it is read
	}
	after = putBack(before, after)
	kept := literals(after)
	for _, literal := range inexact(before) {
		if rounded := asFloat(literal); !slices.Contains(kept, literal) && slices.ContainsFunc(kept, func(k string) bool { return asFloat(k) == rounded }) {
			return nil, guideway.Errorf(guideway.CodeInvalid, "the number %s of the graph would be saved as %s, which is the nearest that scripts have", literal, rounded).
				WithFix("change the graph in its file, or write the number as a text, in quotes")
		}
	}
	text, err := json.Marshal(after)
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeInternal, "encode the graph: %w", err)
	}
	return text, nil
}

// written is the value of a file with its numbers as they stand there; nil where it
// is neither JSON nor YAML.
func written(text []byte) any {
	if value, ok := decoded(text); ok {
		return value
	}
	var document yaml.Node
	if yaml.Unmarshal(text, &document) != nil || document.Kind != yaml.DocumentNode || len(document.Content) != 1 || hasAlias(&document) {
		return nil
	}
	return valueOf(document.Content[0])
}

func valueOf(n *yaml.Node) any {
	switch n.Kind {
	case yaml.MappingNode:
		object := map[string]any{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			object[n.Content[i].Value] = valueOf(n.Content[i+1])
		}
		return object
	case yaml.SequenceNode:
		list := make([]any, len(n.Content))
		for i, item := range n.Content {
			list[i] = valueOf(item)
		}
		return list
	case yaml.ScalarNode:
		// Hexadecimal and the like are no numbers of JSON, which the file becomes.
		if tag := n.ShortTag(); (tag == "!!int" || tag == "!!float") && json.Valid([]byte(n.Value)) {
			return json.Number(n.Value)
		}
		return n.Value
	}
	return nil
}

func decoded(text []byte) (value any, ok bool) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	return value, dec.Decode(&value) == nil
}

// putBack gives after with the numbers of before that it has rounded. Items of
// lists are the same ones where they have one name, or one place.
func putBack(before, after any) any {
	switch b := before.(type) {
	case map[string]any:
		if a, ok := after.(map[string]any); ok {
			for key, v := range a {
				a[key] = putBack(b[key], v)
			}
		}
	case []any:
		if a, ok := after.([]any); ok {
			for i, v := range a {
				a[i] = putBack(counterpart(b, v, i), v)
			}
		}
	case json.Number:
		sent := "null"
		if a, ok := after.(json.Number); ok {
			sent = asFloat(a.String())
		} else if after != nil {
			return after
		}
		if isRounded(b.String()) && asFloat(b.String()) == sent {
			return b
		}
	}
	return after
}

func counterpart(list []any, item any, i int) any {
	if name := nameOfItem(item); name != "" {
		if at := slices.IndexFunc(list, func(v any) bool { return nameOfItem(v) == name }); at >= 0 {
			return list[at]
		}
		return nil
	}
	if i < len(list) {
		return list[i]
	}
	return nil
}

// inexact gives the numbers of a value that a browser has no equal of.
func inexact(value any) []string {
	return slices.DeleteFunc(literals(value), func(s string) bool { return !isRounded(s) })
}

// literals gives all numbers of a value as they are written.
func literals(value any) (list []string) {
	switch value := value.(type) {
	case json.Number:
		return []string{value.String()}
	case map[string]any:
		for _, key := range keysOf(value) {
			list = append(list, literals(value[key])...)
		}
	case []any:
		for _, v := range value {
			list = append(list, literals(v)...)
		}
	}
	return list
}

// isRounded says whether a number comes back as another one from a browser.
func isRounded(literal string) bool {
	f, err := strconv.ParseFloat(literal, 64)
	return err != nil || decimal(literal) != decimal(strconv.FormatFloat(f, 'g', -1, 64))
}

// asFloat is a number as a browser writes it.
func asFloat(literal string) string {
	f, err := strconv.ParseFloat(literal, 64)
	if err != nil {
		return "null" // it is infinite there, which JSON cannot say
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}

// decimal is a number in one form: its digits without zeros around them, and the
// power of ten behind them.
func decimal(literal string) string {
	sign := ""
	if s, ok := strings.CutPrefix(literal, "-"); ok {
		sign, literal = "-", s
	}
	mantissa, exponent, _ := strings.Cut(strings.ToLower(literal), "e")
	power, _ := strconv.Atoi(exponent) // one that is no int is out of all range
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	short := strings.TrimRight(digits, "0")
	if short == "" {
		return "0"
	}
	return sign + short + "e" + strconv.Itoa(power-len(fraction)+len(digits)-len(short))
}
