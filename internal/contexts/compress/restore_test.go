package compress

import (
	"fmt"
	"strings"
)

// Restore replaces the reduced values of a compressed context by the whole values, which it
// reads by their references.
func Restore(reduced Context, omitted []Omission, read func(ref string) ([]byte, error)) (Context, error) {
	out := make(Context, len(reduced)+len(omitted))
	for key, value := range reduced {
		out[key] = value
	}
	for _, o := range omitted {
		value, err := read(o.Ref)
		if err != nil {
			return nil, fmt.Errorf("read back %q from %s: %w", o.Key, o.Ref, err)
		}
		if RefOf(value) != o.Ref {
			return nil, fmt.Errorf("the stored bytes of %s do not match the value of %q", o.Ref, o.Key)
		}
		out[o.Key] = value
	}
	return out, nil
}

// IsRef reports whether a string has the form of a reference.
func IsRef(text string) bool {
	return strings.HasPrefix(text, "ref_") && len(text) == len("ref_")+16
}
