package install

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/guideway-dev/guideway"
)

// SetMember returns a JSON document in which a path of keys has the value, which is JSON.
// All other bytes are unchanged.
func SetMember(src []byte, path []string, value json.RawMessage) ([]byte, error) {
	d, err := readJSON(src)
	if err != nil {
		return nil, readError(err)
	}
	out, err := d.setValue(path, value)
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
		return nil, false, readError(fmt.Errorf("%q occurs twice", last))
	}
	return d.removeMember(n, last), true, nil
}

func readError(err error) error {
	return guideway.Errorf(guideway.CodeInvalid, "the file cannot be edited: %w", err).WithFix("fix the file by hand")
}

// renderJSON returns JSON in the style of the document.
func (d *jsonDoc) renderJSON(value json.RawMessage, multi bool, indent string) string {
	var out bytes.Buffer
	if !multi || json.Indent(&out, value, indent, d.unit) != nil {
		return string(value)
	}
	return string(bytes.ReplaceAll(out.Bytes(), []byte("\n"), []byte(d.newline)))
}
