package compress

import (
	"fmt"
	"strings"
)

// Restore reads the omitted values of a compressed context by their references.
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

// IsRef reports whether a text has the form of a reference.
func IsRef(text string) bool {
	return strings.HasPrefix(text, "ref_") && len(text) == len("ref_")+16
}

// Observe returns the history after a step that produced the context c.
func (h History) Observe(c Context, origin string) History {
	next := History{Step: h.Step + 1, Keys: make(map[string]KeyState, len(c))}
	for key, value := range c {
		seen := KeyState{Hash: hashOf(value), Step: next.Step, Origin: origin}
		if before, ok := h.Keys[key]; ok && before.Hash == seen.Hash {
			seen = before
		}
		next.Keys[key] = seen
	}
	return next
}
