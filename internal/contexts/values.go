package contexts

import (
	"encoding/json"
	"maps"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/compress"
	"github.com/guideway-dev/guideway/internal/platform/jsontext"
)

// The members of a stored context that have a meaning for the server. A caller cannot set
// keyRun or keyNext.
const (
	// keyRun identifies the run of a checkpoint for readers that have only the checkpoint.
	// No decision depends on it.
	keyRun = "_run"
	// keyNext has the state of a walk by workflow_next.
	keyNext = "_next"
	// keyCritical has the marks of a session.
	keyCritical = "_critical"
	// keySession is the session under which the caller wants a context to be saved. The
	// caller sets it.
	keySession = "_sessionId"
)

// encodeJSON encodes JSON without unnecessary escapes, deterministically.
func encodeJSON(value any) (json.RawMessage, error) {
	text, err := jsontext.Marshal(value)
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeInvalid, "the context cannot be encoded as JSON: %w", err)
	}
	return text, nil
}

// valuesOf returns the variables with each value encoded as JSON.
func valuesOf(vars map[string]any) (compress.Context, error) {
	out := make(compress.Context, len(vars))
	for key, value := range vars {
		text, err := encodeJSON(value)
		if err != nil {
			return nil, err
		}
		out[key] = text
	}
	return out, nil
}

// objectOf splits a stored context into its unchanged members.
func objectOf(text []byte) (map[string]json.RawMessage, error) {
	out, ok := compress.SplitObject(string(text))
	if !ok {
		return nil, guideway.Errorf(guideway.CodeInternal, "read a context: it is not an object")
	}
	return out, nil
}

// withoutKeys returns a copy of the variables without some keys.
func withoutKeys(vars map[string]any, keys ...string) map[string]any {
	out := make(map[string]any, len(vars))
	maps.Copy(out, vars)
	for _, key := range keys {
		delete(out, key)
	}
	return out
}
