package jsonrpc

import (
	"bytes"
	"encoding/json"

	"github.com/guideway-dev/guideway/internal/platform/lists"
)

// RewriteObject changes the members of an object. If nothing changes, it returns the same
// bytes.
func RewriteObject(raw json.RawMessage, f func(key string, value json.RawMessage) json.RawMessage) json.RawMessage {
	var all []Member
	changed := false
	err := Each(raw, func(key string, value json.RawMessage) error {
		next := f(key, value)
		changed = changed || !sameBytes(next, value)
		all = append(all, Member{Key: key, Value: next})
		return nil
	})
	if err != nil || !changed {
		return raw
	}
	return Object(all...)
}

// RewriteList changes the entries of a list. A value that is not a list is changed like an
// entry. If nothing changes, RewriteList returns the same bytes.
func RewriteList(raw json.RawMessage, f func(json.RawMessage) json.RawMessage) json.RawMessage {
	if raw[0] != '[' {
		return f(raw)
	}
	var parts []json.RawMessage
	if json.Unmarshal(raw, &parts) != nil {
		return raw
	}
	changed := false
	for i, part := range parts {
		parts[i] = f(part)
		changed = changed || !sameBytes(parts[i], part)
	}
	if !changed {
		return raw
	}
	return List(parts...)
}

// List returns a JSON list of values, which it keeps byte for byte.
func List(parts ...json.RawMessage) json.RawMessage {
	list := lists.Map(parts, func(part json.RawMessage) []byte { return part })
	return append(append(json.RawMessage{'['}, bytes.Join(list, []byte{','})...), ']')
}

// sameBytes reports whether two values share memory.
func sameBytes(a, b json.RawMessage) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// TextMember returns a text member of an object, or "".
func TextMember(raw json.RawMessage, key string) (text string) {
	_ = Each(raw, func(name string, value json.RawMessage) error {
		if name == key {
			_ = json.Unmarshal(value, &text)
		}
		return nil
	})
	return text
}

// ObjectMember returns a member of an object that is an object, or an empty object.
func ObjectMember(raw json.RawMessage, key string) json.RawMessage {
	members, err := Members(raw, key)
	if value := members[key]; err == nil && len(value) > 0 && value[0] == '{' {
		return value
	}
	return json.RawMessage(`{}`)
}
