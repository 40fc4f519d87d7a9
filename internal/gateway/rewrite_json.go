package gateway

import (
	"bytes"
	"encoding/json"

	"github.com/guideway-dev/guideway/internal/gateway/jsonrpc"
	"github.com/guideway-dev/guideway/internal/platform/lists"
)

// rewriteObject changes the members of an object. If nothing changes, it returns the same
// bytes.
func rewriteObject(raw json.RawMessage, f func(key string, value json.RawMessage) json.RawMessage) json.RawMessage {
	var all []jsonrpc.Member
	changed := false
	err := jsonrpc.Each(raw, func(key string, value json.RawMessage) error {
		next := f(key, value)
		changed = changed || !sameBytes(next, value)
		all = append(all, jsonrpc.Member{Key: key, Value: next})
		return nil
	})
	if err != nil || !changed {
		return raw
	}
	return jsonrpc.Object(all...)
}

// rewriteList changes the entries of a list. A value that is not a list is changed like an
// entry. If nothing changes, rewriteList returns the same bytes.
func rewriteList(raw json.RawMessage, f change) json.RawMessage {
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
	return encodeList(parts...)
}

// encodeList returns a JSON list of values, which it keeps byte for byte.
func encodeList(parts ...json.RawMessage) json.RawMessage {
	list := lists.Map(parts, func(part json.RawMessage) []byte { return part })
	return append(append(json.RawMessage{'['}, bytes.Join(list, []byte{','})...), ']')
}

// sameBytes reports whether two values share memory.
func sameBytes(a, b json.RawMessage) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}
