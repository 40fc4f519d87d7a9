package secret

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/guideway-dev/guideway/internal/platform/jsontext"
)

// redacted replaces the value of a key that names a credential.
const redacted = "[redacted]"

// Redact returns a text without likely credentials, and reports whether there were any. In
// JSON objects and lists at the beginning of the text, they are also recognized by their
// keys. A replacement of "" contains the name of the rule.
func (d Detector) Redact(text, replacement string) (string, bool) {
	clean, rest, found := d.redactNested(text, replacement)
	for _, list := range slices.Insert(d.lists(), 1, hints()) {
		for i := range list {
			var hit bool
			rest, hit = list[i].redactText(rest, replacement)
			found = found || hit
		}
	}
	return clean + rest, found
}

// redactNested redacts the objects and lists at the beginning of a text, and returns the
// remaining text. If they contain no credentials, all of the text remains.
func (d Detector) redactNested(text, replacement string) (clean, rest string, found bool) {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var out strings.Builder
	rest = text
	for value := strings.TrimLeft(rest, blanks); strings.IndexAny(value, "{[") == 0; value = strings.TrimLeft(rest, blanks) {
		var tree any
		if decoder.Decode(&tree) != nil {
			break
		}
		end := int(decoder.InputOffset()) - (len(text) - len(value))
		part := value[:end]
		if changed, hit := d.RedactTree("", tree, replacement); hit {
			if encoded, err := jsontext.Marshal(changed); err == nil {
				part, found = string(encoded), true
			}
		}
		out.WriteString(rest[:len(rest)-len(value)] + part)
		rest = value[end:]
	}
	if !found {
		return "", text, false
	}
	return out.String(), rest, true
}

// blanks is the white space of JSON.
const blanks = " \t\r\n"

// redactText replaces the credentials of one rule. A replacement of "" contains the name of
// the rule.
func (r *rule) redactText(text, replacement string) (string, bool) {
	found, marked := false, r.markedText(text)
	for _, mark := range r.marks {
		var out strings.Builder
		from := 0
		for start, end := r.nextMatch(text, marked, mark, 0); end > 0; start, end = r.nextMatch(text, marked, mark, end) {
			by := cmp.Or(replacement, "[redacted: "+r.name+"]")
			if r.isPlaceholder(text[:start], text[start:end]) || text[start:end] == by {
				continue
			}
			out.WriteString(text[from:start])
			out.WriteString(by)
			from, found = end, true
		}
		if from > 0 {
			text = out.String() + text[from:]
			marked = r.markedText(text)
		}
	}
	return text, found
}

// maxLead is the maximum length of a lead.
const maxLead = 64

// nextMatch returns the position of the next credential of a mark, or 0, 0 if there is none.
// marked is the text in which the mark is searched; see markedText.
func (r *rule) nextMatch(text, marked, mark string, from int) (start, end int) {
	for at := from; ; at++ {
		i := strings.Index(marked[at:], mark)
		if i < 0 {
			return 0, 0
		}
		at += i
		first := at
		for first > from && at-first < maxLead && strings.IndexByte(r.lead, text[first-1]) >= 0 {
			first--
		}
		if r.bounded && first > 0 {
			first--
		}
		if m := r.pattern().FindStringSubmatchIndex(text[first:]); m != nil && first+m[4] >= from {
			return first + m[4], first + m[5]
		}
	}
}

// markedText returns the text in which marks are searched: in lower case, if the rule ignores
// the case. Its positions are those of the text.
func (r *rule) markedText(text string) string {
	if !r.foldsCase || strings.IndexFunc(text, func(c rune) bool { return 'A' <= c && c <= 'Z' }) < 0 {
		return text
	}
	small := []byte(text)
	for i, c := range small {
		if 'A' <= c && c <= 'Z' {
			small[i] += 'a' - 'A'
		}
	}
	return string(small)
}

// isPlaceholder reports whether the match of a hint is no credential: a placeholder, a word
// where a random text is expected, or the token of a page.
func (r *rule) isPlaceholder(before, text string) bool {
	if strings.Contains(text, "[redacted") {
		return true
	}
	if r.certain != nil && !r.certain(before, text) {
		return true
	}
	return r.hint && (placeholder().MatchString(text) || r.random && !strings.ContainsAny(text, digits) ||
		pagePattern().MatchString(strings.TrimRight(before[max(0, len(before)-maxLead):], "\"' \t:=>")))
}

// RedactTree returns a decoded JSON value without likely credentials, and reports whether
// there were any. key is the key of the value, or "". The value may be changed.
func (d Detector) RedactTree(key string, value any, replacement string) (any, bool) {
	if hidden := any(cmp.Or(replacement, redacted)); NamesSecret(key) && value != nil {
		return hidden, value != hidden
	}
	found := false
	switch v := value.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			changed, hit := d.RedactTree(k, v[k], replacement)
			name, renamed := d.Redact(k, replacement)
			if renamed {
				delete(v, k)
				name = freeName(v, name)
			}
			v[name], found = changed, found || hit || renamed
		}
	case []any:
		for i, inner := range v {
			changed, hit := d.RedactTree("", inner, replacement)
			v[i], found = changed, found || hit
		}
	case string:
		return d.Redact(v, replacement)
	}
	return value, found
}

// freeName returns a key that the object does not contain, because redaction can make two
// keys equal.
func freeName(in map[string]any, name string) string {
	free := name
	for n := 2; ; n++ {
		if _, taken := in[free]; !taken {
			return free
		}
		free = name + " " + strconv.Itoa(n)
	}
}
