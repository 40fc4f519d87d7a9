package engine

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	hookdef "github.com/guideway-dev/guideway/internal/hooks/definition"
	"github.com/guideway-dev/guideway/internal/workflow/doc"
	"github.com/guideway-dev/guideway/internal/workflow/expr"
)

// state is what the nodes of one request share. Its values are replaced, never
// changed, so that a copy of it is a snapshot.
type state struct {
	method   hookdef.Type
	params   value
	response value
	// variables are those of the graph; shared is the object metadata.shared,
	// which scripts of the ADR's first version keep things in.
	variables, shared value

	metadata Metadata
	graph    string
	started  time.Time
	// sent, took and failure are of the call.
	sent    bool
	took    time.Duration
	failure error
	// answered says that a hook has given the response.
	answered bool
	// altered says that a hook has changed the request or the response.
	altered bool
}

// value is a JSON value that is only read where a script or condition looks at
// it. The zero value is none.
type value struct {
	raw  json.RawMessage
	read *tree
}

func (v *value) none() bool { return len(v.raw) == 0 }

// tree reads the value; nil where there is none.
func (v *value) tree() (*tree, error) {
	if v.read == nil && !v.none() {
		t, err := parseTree(v.raw)
		if err != nil {
			return nil, err
		}
		v.read = t
	}
	return v.read, nil
}

// nodeMetadata is the metadata that the script of a node gets.
type nodeMetadata struct {
	Metadata
	WorkflowID string          `json:"workflowId"`
	NodeID     string          `json:"nodeId"`
	StartTime  int64           `json:"startTime"`
	Duration   *float64        `json:"duration,omitempty"`
	Error      *NodeError      `json:"error,omitempty"`
	Shared     json.RawMessage `json:"shared"`
}

func (s *state) metadataFor(node string) nodeMetadata {
	m := nodeMetadata{Metadata: s.metadata, WorkflowID: s.graph, NodeID: node, StartTime: s.started.UnixMilli(), Shared: s.shared.raw}
	if s.sent {
		ms := milliseconds(s.took)
		m.Duration = &ms
	}
	if s.failure != nil {
		m.Error = &NodeError{Code: CodeCall, Message: s.failure.Error()}
	}
	return m
}

// context is the value that the script of a node gets.
func (s *state) context(node string) (json.RawMessage, error) {
	// Read first: what cannot be read is not handed on.
	for _, v := range []*value{&s.params, &s.response} {
		if _, err := v.tree(); err != nil {
			return nil, err
		}
	}
	metadata, err := json.Marshal(s.metadataFor(node))
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteString(`{"request":{"method":"` + string(s.method) + `"`)
	if !s.params.none() {
		b.WriteString(`,"params":`)
		b.Write(s.params.raw)
	}
	b.WriteByte('}')
	if !s.response.none() {
		b.WriteString(`,"response":`)
		b.Write(s.response.raw)
	}
	fmt.Fprintf(&b, `,"metadata":%s,"variables":%s}`, metadata, s.variables.raw)
	return b.Bytes(), nil
}

// lookup is what conditions read.
func (s *state) lookup(node string) (expr.Lookup, error) {
	params, err := s.params.tree()
	if err != nil {
		return nil, err
	}
	response, err := s.response.tree()
	if err != nil {
		return nil, err
	}
	variables, err := s.variables.tree()
	if err != nil {
		return nil, err
	}
	return func(name string) (any, bool) {
		switch name {
		case "request":
			request := map[string]any{"method": string(s.method)}
			if params != nil {
				request["params"] = params.any()
			}
			return request, true
		case "response":
			return response.any(), response != nil
		case "variables":
			return variables.any(), true
		case "metadata":
			var metadata map[string]any
			text, err := json.Marshal(s.metadataFor(node))
			return metadata, err == nil && json.Unmarshal(text, &metadata) == nil
		default:
			return nil, false
		}
	}, nil
}

// take takes over what a script has made of the context, and gives the
// differences.
func (s *state) take(after *tree) ([]Change, error) {
	request := after.get("request")
	method := request.get("method")
	switch {
	case request == nil || request.kind != '{':
		return nil, fmt.Errorf("the hook left no context.request")
	case method == nil || method.text != string(s.method):
		return nil, fmt.Errorf("the hook changed context.request.method, which stays %q", s.method)
	}
	next, diff := *s, &changes{}
	changed, err := next.params.replace(diff, "/request/params", request.get("params"), '{')
	if err != nil {
		return nil, err
	}
	answered, err := next.takeResponse(diff, after.get("response"))
	if err != nil {
		return nil, err
	}
	next.altered = next.altered || changed || answered
	if _, err := next.variables.replace(diff, "/variables", orEmpty(after.get("variables")), '{'); err != nil {
		return nil, err
	}
	if _, err := next.shared.replace(diff, "/metadata/shared", orEmpty(after.get("metadata").get("shared")), '{'); err != nil {
		return nil, err
	}
	*s = next
	return diff.list, nil
}

// orEmpty is an empty object where there is no value.
func orEmpty(t *tree) *tree {
	if t.null() {
		return &tree{kind: '{', raw: []byte("{}")}
	}
	return t
}

// takeResponse takes over the response, and says whether it is another one.
func (s *state) takeResponse(diff *changes, after *tree) (bool, error) {
	if after.null() {
		if s.sent {
			return false, fmt.Errorf("the hook took context.response away; to keep a response back, return {continue: false, error: {...}}")
		}
		s.answered, after = false, nil
	}
	changed, err := s.response.replace(diff, "/response", after, '{')
	if err != nil {
		return false, err
	}
	if changed && !s.response.none() {
		if err := checkResponse(s.method, after); err != nil {
			return false, err
		}
		s.answered = s.answered || !s.sent
	}
	return changed, nil
}

// replace takes a value over, of a kind, and says whether it is another one.
func (v *value) replace(diff *changes, at doc.Pointer, after *tree, kind byte) (bool, error) {
	before, err := v.tree()
	if err != nil {
		return false, err
	}
	switch {
	case after != nil && after.kind != kind:
		return false, fmt.Errorf("the hook left a value at context%s that is no object", dotted(at))
	case after == nil && before == nil:
		return false, nil
	case after == nil:
		diff.add("remove", at, before, nil)
		*v = value{}
		return true, nil
	case before == nil:
		diff.add("add", at, nil, after)
		*v = value{raw: after.raw}
		return true, nil
	}
	merged, same := diff.merge(at, before, after)
	if !same {
		*v = value{raw: merged}
	}
	return !same, nil
}

// dotted writes a pointer as a script would.
func dotted(at doc.Pointer) string {
	return string(bytes.ReplaceAll([]byte(at), []byte("/"), []byte(".")))
}

// checkResponse looks at a response that a hook has made or changed: a client
// could not make anything of another form.
func checkResponse(method hookdef.Type, response *tree) error {
	list, member, kind := "tools", "name", "tool"
	if method == hookdef.ToolsCall {
		list, member, kind = "content", "type", "part of the content"
	}
	items := response.get(list)
	if items == nil || items.kind != '[' {
		return fmt.Errorf("the hook left a response without the list %q, which every response to %s has", list, method)
	}
	for i, item := range items.kids {
		if text := item.get(member); item.kind != '{' || text == nil || text.kind != '"' || text.text == "" {
			return fmt.Errorf("the hook left a response where %s[%d] has no %q, which every %s has", list, i, member, kind)
		}
	}
	return nil
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
