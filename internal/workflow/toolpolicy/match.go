package toolpolicy

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/guideway-dev/guideway/internal/gateway/jsonrpc"
	"github.com/guideway-dev/guideway/internal/platform/jsontext"
	"github.com/guideway-dev/guideway/internal/platform/wildcard"
)

// certainty is the certainty with which a rule matches a call. A call matches with the
// certainty possible if readers of its arguments disagree: an object has a member twice, or
// a member whose name differs from that in the rule only in case, or a text is JSON. Some
// tools read the first of two members, others the last, some ignore case, and some parse a
// text that should be an object or a list. The same applies if the pattern of the rule
// matches only the short name of the tool, whose end is a hash.
type certainty int

const (
	never certainty = iota
	possible
	certain
)

var errNotObject = errors.New("the value is not an object")

// match returns the certainty with which the rule matches a call.
func (r *Rule) match(c Call) certainty {
	least := r.matchName(c)
	if least == never {
		return never
	}
	for name, want := range r.Annotations {
		got, declared := c.Annotations[name]
		if !declared {
			got = Annotations[name] && (name != "destructive" || !c.Annotations["readOnly"])
		}
		if got != want {
			return never
		}
	}
	if len(r.Arguments) > 0 && bytes.HasPrefix(bytes.TrimSpace(c.Arguments), []byte("[")) {
		return possible // only the tool knows which arguments the items of a list are
	}
	for at, pattern := range r.Arguments {
		least = min(least, matchArgument(c.Arguments, at, pattern))
	}
	return least
}

// matchName returns the certainty with which the rule matches the name of the tool.
func (r *Rule) matchName(c Call) certainty {
	switch {
	case wildcard.Match(r.Tool, c.Tool), c.Short != "" && r.Tool == c.Short:
		return certain
	case c.Short != "" && wildcard.Match(r.Tool, c.Short):
		return possible
	}
	return never
}

// matchArgument returns the certainty with which the argument at a JSON pointer or with a
// name matches a pattern.
func matchArgument(arguments json.RawMessage, at, pattern string) certainty {
	if !strings.HasPrefix(at, "/") {
		at = "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(at)
	}
	values, exact := []json.RawMessage{arguments}, true
	for token := range strings.SplitSeq(at[1:], "/") {
		var next []json.RawMessage
		for _, value := range values {
			found, same := membersOf(value, strings.NewReplacer("~1", "/", "~0", "~").Replace(token))
			next, exact = append(next, found...), exact && same
		}
		values = next
	}
	best := never
	for _, value := range values {
		found, unique := matchValue(value, pattern)
		best, exact = max(best, found), exact && unique
	}
	if best == certain && !exact {
		return possible
	}
	return best
}

// matchValue returns the certainty with which a value matches a pattern. unique reports
// whether no object in it has a member twice.
func matchValue(raw json.RawMessage, pattern string) (found certainty, unique bool) {
	found = certain
	var s *string
	if json.Unmarshal(raw, &s) == nil && s != nil {
		if wildcard.Match(pattern, *s) {
			return certain, true
		}
		if raw = parseText(*s); raw == nil {
			return never, true
		}
		found = possible
	}
	unique = jsonrpc.CheckUnique(raw) == nil
	if wildcard.Match(pattern, plainText(raw, false)) || wildcard.Match(pattern, plainText(raw, true)) {
		return found, unique
	}
	return never, unique
}

// parseText returns the object or the list in a text, or nil.
func parseText(text string) json.RawMessage {
	if text = strings.TrimSpace(text); strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[") {
		if json.Valid([]byte(text)) {
			return json.RawMessage(text)
		}
	}
	return nil
}

// membersOf returns the members of an object that a reader may find by a name, or the item
// of a list with the index. exact reports whether all readers find the same.
func membersOf(raw json.RawMessage, name string) (values []json.RawMessage, exact bool) {
	exact = true
	var text string
	if json.Unmarshal(raw, &text) == nil {
		if raw = parseText(text); raw == nil {
			return nil, true
		}
		exact = false
	}
	count := 0
	err := visitMembers(raw, func(key string, value json.RawMessage) {
		if strings.EqualFold(key, name) {
			values, exact = append(values, value), exact && key == name
			count++
		}
	})
	if err == nil {
		return values, exact && count <= 1
	}
	var list []json.RawMessage
	i, err := strconv.Atoi(name)
	if json.Unmarshal(raw, &list) != nil || err != nil || i < 0 || i >= len(list) {
		return nil, exact
	}
	return list[i : i+1], exact
}

// visitMembers calls visit with each member of an object, also if two have the same name. It
// returns an error if the value is not an object.
func visitMembers(raw json.RawMessage, visit func(key string, value json.RawMessage)) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	if start, err := d.Token(); err != nil || start != json.Delim('{') {
		return errNotObject
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return err
		}
		name, _ := key.(string)
		visit(name, value)
	}
	return nil
}

// plainText returns a value in compact JSON without unnecessary escapes, so that no spelling
// of a text avoids a pattern. If numbers is set, it also writes 1.0 and 10e-1 as 1.
func plainText(raw json.RawMessage, numbers bool) string {
	var compact bytes.Buffer
	if json.Compact(&compact, raw) != nil {
		return ""
	}
	var out []byte
	for rest := compact.Bytes(); len(rest) > 0; {
		n := lengthOfToken(rest)
		token := rest[:n]
		rest = rest[n:]
		var text string
		switch {
		case token[0] == '"' && bytes.IndexByte(token, '\\') >= 0 && json.Unmarshal(token, &text) == nil:
			out = jsontext.AppendString(out, text)
		case numbers && bytes.ContainsAny(token, ".eE-") && jsontext.IsNumber(string(token)):
			if f, err := strconv.ParseFloat(string(token), 64); err == nil && math.Abs(f) < 1<<53 {
				out = jsontext.AppendNumber(out, f)
				continue
			}
			out = append(out, token...)
		default:
			out = append(out, token...)
		}
	}
	return string(out)
}

// lengthOfToken returns the length of the first text, delimiter, number or word of compact
// JSON.
func lengthOfToken(rest []byte) int {
	n := 1
	switch {
	case rest[0] == '"':
		for rest[n] != '"' {
			if rest[n] == '\\' {
				n++
			}
			n++
		}
		n++
	case bytes.IndexByte([]byte("{}[],:"), rest[0]) < 0:
		for n < len(rest) && bytes.IndexByte([]byte("{}[],:"), rest[n]) < 0 {
			n++
		}
	}
	return n
}
