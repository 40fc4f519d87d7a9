package install

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/guideway-dev/guideway"
)

// SetMember gives a JSON document with the value, which is JSON, at a path of
// keys, and every other byte as it was.
func SetMember(src []byte, path []string, value json.RawMessage) ([]byte, error) {
	d, err := readJSON(src)
	if err != nil {
		return nil, unreadable(err)
	}
	out, err := d.set(path, value)
	if err != nil {
		return nil, unreadable(err)
	}
	if _, err := readJSON(out); err != nil {
		return nil, guideway.Errorf(guideway.CodeInternal, "the edit would break the file: %w", err)
	}
	return out, nil
}

// RemoveMember gives a JSON document without the member at a path of keys;
// found tells whether it was there.
func RemoveMember(src []byte, path []string) (out []byte, found bool, err error) {
	d, err := readJSON(src)
	if err != nil {
		return nil, false, unreadable(err)
	}
	n := d.root
	for _, key := range path[:len(path)-1] {
		if n == nil {
			return src, false, nil
		}
		n = getMember(n, key)
	}
	last := path[len(path)-1]
	if n == nil || getMember(n, last) == nil {
		return src, false, nil
	}
	if _, twice := findMember(n, last); twice {
		return nil, false, unreadable(fmt.Errorf("%q is there twice", last))
	}
	return d.remove(n, last), true, nil
}

func unreadable(err error) error {
	return guideway.Errorf(guideway.CodeInvalid, "the file cannot be edited: %w", err).WithFix("mend it by hand")
}

// renderJSON writes JSON in the style of the document.
func (d *jsonDoc) renderJSON(value json.RawMessage, multi bool, indent string) string {
	var out bytes.Buffer
	if !multi || json.Indent(&out, value, indent, d.unit) != nil {
		return string(value)
	}
	return string(bytes.ReplaceAll(out.Bytes(), []byte("\n"), []byte(d.newline)))
}
