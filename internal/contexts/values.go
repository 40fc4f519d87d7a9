package contexts

import (
	"bytes"
	"encoding/json"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/compress"
)

// The members of a stored context that are the server's. What the caller sends
// under these names is not stored.
const (
	// keyRun tells of the run that a checkpoint is of, for whoever reads the
	// checkpoint alone. Nothing is decided by it.
	keyRun = "_run"
	// keyNext tells of the walk that workflow_next was called for.
	keyNext = "_next"
	// keyCritical has the marks of a session.
	keyCritical = "_critical"
	// keySession names the session that the caller wants a context to be saved
	// under. It is the caller's.
	keySession = "_sessionId"
)

// encode writes JSON without escapes that need not be: the same value always
// gives the same bytes.
func encode(value any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return nil, guideway.Errorf(guideway.CodeInvalid, "write a context as JSON: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// valuesOf gives each variable as the bytes that it is stored as.
func valuesOf(vars map[string]any) (compress.Context, error) {
	out := make(compress.Context, len(vars))
	for key, value := range vars {
		text, err := encode(value)
		if err != nil {
			return nil, err
		}
		out[key] = text
	}
	return out, nil
}

// objectOf reads a JSON object into its members as they stand.
func objectOf(text []byte) (map[string]json.RawMessage, error) {
	var out map[string]json.RawMessage
	if err := json.Unmarshal(text, &out); err != nil {
		return nil, guideway.Errorf(guideway.CodeInternal, "read a context: %w", err)
	}
	return out, nil
}

// without is a copy of variables that lacks some.
func without(vars map[string]any, keys ...string) map[string]any {
	out := make(map[string]any, len(vars))
	for key, value := range vars {
		out[key] = value
	}
	for _, key := range keys {
		delete(out, key)
	}
	return out
}
