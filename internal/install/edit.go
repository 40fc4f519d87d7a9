package install

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/guideway-dev/guideway"
	"github.com/tailscale/hujson"
)

// DecodeMembers decodes a JSON document, which may have comments.
func DecodeMembers(src []byte, into any) error {
	if _, err := readJSON(src); err != nil {
		return readError(err)
	}
	if err := json.Unmarshal(standardizeJSON(src), into); err != nil {
		return readError(err)
	}
	return nil
}

// SetMember returns a JSON document in which a path of keys has the value, which is JSON.
// All other bytes are unchanged.
func SetMember(src []byte, path []string, value json.RawMessage) ([]byte, error) {
	d, err := readJSON(src)
	if err != nil {
		return nil, readError(err)
	}
	out, err := d.putValue(path, value)
	if err != nil {
		return nil, readError(err)
	}
	if _, err := readJSON(out); err != nil {
		return nil, guideway.Errorf(guideway.CodeInternal, "the edit would break the file: %w", err)
	}
	return out, nil
}

// RemoveMember returns a JSON document without the member at a path of keys. found reports
// whether it existed.
func RemoveMember(src []byte, path []string) (out []byte, found bool, err error) {
	d, err := readJSON(src)
	if err != nil {
		return nil, false, readError(err)
	}
	_, depth, err := d.findValue(path)
	if err != nil || depth < len(path) {
		return src, false, readError(err)
	}
	n, _, _ := d.findValue(path[:len(path)-1]) // it exists
	return d.removeMember(n, path[len(path)-1]), true, nil
}

// AddElement returns a JSON document in which the array at a path of keys has one more
// element at its end, the value, which is JSON. It adds missing objects and a missing array.
// All other bytes are unchanged.
func AddElement(src []byte, path []string, value json.RawMessage) ([]byte, error) {
	d, err := readJSON(src)
	if err != nil {
		return nil, readError(err)
	}
	n, err := d.findArray(path)
	if err != nil {
		return nil, readError(err)
	}
	if n == nil {
		src, err = d.putValue(path, []any{value})
	} else {
		src = d.insertElement(n, value)
	}
	if err == nil {
		_, err = readJSON(src)
	}
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeInternal, "the edit would break the file: %w", err)
	}
	return src, nil
}

// RemoveElements returns a JSON document without the elements of the array at a path of keys
// for which match returns true, and the number of removed elements. match gets an element as
// JSON without comments and trailing commas. An array that is then empty stays.
func RemoveElements(src []byte, path []string, match func(json.RawMessage) bool) (out []byte, removed int, err error) {
	for {
		d, err := readJSON(src)
		if err != nil {
			return nil, 0, readError(err)
		}
		n, err := d.findArray(path)
		if err != nil {
			return nil, 0, readError(err)
		}
		if n == nil {
			return src, removed, nil
		}
		plain := standardizeJSON(src)
		i := slices.IndexFunc(childrenOf(n), func(c child) bool { return match(plain[c.value.StartOffset:c.value.EndOffset]) })
		if i < 0 {
			return src, removed, nil
		}
		src, removed = d.removeChild(n, i), removed+1
	}
}

// findArray returns the array at a path of keys, or nil if it is missing.
func (d *jsonDoc) findArray(path []string) (*hujson.Value, error) {
	n, found, err := d.findValue(path)
	if err != nil || n == nil || found < len(path) {
		return nil, err
	}
	if n.Value.Kind() != '[' {
		return nil, syntaxAt(d.src, n.StartOffset, "%q is not a list", path[found-1])
	}
	return n, nil
}

func readError(err error) error {
	if err == nil {
		return nil
	}
	return guideway.Errorf(guideway.CodeInvalid, "the file cannot be edited: %w", withPosition(err)).WithFix("correct the file by hand, then run the same command again")
}

// renderJSON returns JSON in the style of the document.
func (d *jsonDoc) renderJSON(value json.RawMessage, multi bool, indent string) string {
	var out bytes.Buffer
	if !multi || json.Indent(&out, value, indent, d.unit) != nil {
		return string(value)
	}
	return string(bytes.ReplaceAll(out.Bytes(), []byte("\n"), []byte(d.newline)))
}
