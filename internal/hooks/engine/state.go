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

// state is the shared state of the nodes of one request. Its values are replaced, never
// changed, so that a copy is a snapshot.
type state struct {
	method   hookdef.Type
	params   value
	response value
	// event is the kind of outcome that the hooks handle, and handled the error or the
	// progress message.
	event   hookdef.Event
	handled value
	// variables are the graph's variables; shared is the object metadata.shared, in which
	// older scripts store values.
	variables, shared value

	metadata Metadata
	graph    string
	started  time.Time
	// sent reports whether the call was sent, took is its duration, and failure its error.
	sent    bool
	took    time.Duration
	failure error
	// hold is the reason of hooks to hold the call, or "".
	hold string
	// answered reports whether a hook has answered instead of the server.
	answered bool
	// altered reports whether a hook has changed the request or the response.
	altered bool
}

// value is a JSON value that is decoded only if a script or condition reads it. The zero
// value is empty.
type value struct {
	raw  json.RawMessage
	read *tree
}

func (v *value) isEmpty() bool { return len(v.raw) == 0 }

// decodeTree returns the decoded value; nil if it is empty.
func (v *value) decodeTree() (*tree, error) {
	if v.read == nil && !v.isEmpty() {
		t, err := parseTree(v.raw)
		if err != nil {
			return nil, err
		}
		v.read = t
	}
	return v.read, nil
}

// nodeMetadata is the metadata for the script of a node.
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

// scriptContext returns the context for the script of a node.
func (s *state) scriptContext(node string) (json.RawMessage, error) {
	// Decode first: an invalid value must not be passed on.
	for _, v := range []*value{&s.params, &s.response, &s.handled} {
		if _, err := v.decodeTree(); err != nil {
			return nil, err
		}
	}
	metadata, err := json.Marshal(s.metadataFor(node))
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteString(`{"request":{"method":"` + string(s.method) + `"`)
	if !s.params.isEmpty() {
		b.WriteString(`,"params":`)
		b.Write(s.params.raw)
	}
	b.WriteByte('}')
	if !s.response.isEmpty() {
		b.WriteString(`,"response":`)
		b.Write(s.response.raw)
	}
	if s.event != hookdef.Result {
		fmt.Fprintf(&b, `,%q:%s`, s.event, s.handled.raw)
	}
	fmt.Fprintf(&b, `,"metadata":%s,"variables":%s}`, metadata, s.variables.raw)
	return b.Bytes(), nil
}

// newLookup returns the lookup for conditions.
func (s *state) newLookup(node string) (expr.Lookup, error) {
	params, err := s.params.decodeTree()
	if err != nil {
		return nil, err
	}
	response, err := s.response.decodeTree()
	if err != nil {
		return nil, err
	}
	variables, err := s.variables.decodeTree()
	if err != nil {
		return nil, err
	}
	handled, err := s.handled.decodeTree()
	if err != nil {
		return nil, err
	}
	return func(name string) (any, bool) {
		switch name {
		case "request":
			request := map[string]any{"method": string(s.method)}
			if params != nil {
				request["params"] = params.toAny()
			}
			return request, true
		case "response":
			return response.toAny(), response != nil
		case string(s.event):
			return handled.toAny(), handled != nil
		case "variables":
			return variables.toAny(), true
		case "metadata":
			var metadata map[string]any
			text, err := json.Marshal(s.metadataFor(node))
			return metadata, err == nil && json.Unmarshal(text, &metadata) == nil
		default:
			return nil, false
		}
	}, nil
}

// applyTree applies the context as a script left it, and returns the changes.
func (s *state) applyTree(after *tree) ([]Change, error) {
	request := after.valueOf("request")
	method := request.valueOf("method")
	switch {
	case request == nil:
		return nil, fmt.Errorf("the hook removed context.request; to refuse the request, return {continue: false}")
	case request.kind != '{':
		return nil, fmt.Errorf("the hook set context.request to a value that is not an object")
	case method == nil:
		return nil, fmt.Errorf("the hook removed context.request.method, which must stay %q", s.method)
	case method.text != string(s.method):
		return nil, fmt.Errorf("the hook changed context.request.method, which must stay %q", s.method)
	}
	next, diff := *s, &changes{}
	changed, err := next.params.replaceValue(diff, "/request/params", request.valueOf("params"), '{')
	if err != nil {
		return nil, err
	}
	answered, err := next.applyResponse(diff, after.valueOf("response"))
	if err != nil {
		return nil, err
	}
	if s.event != hookdef.Result {
		if err := next.applyHandled(diff, after.valueOf(string(s.event))); err != nil {
			return nil, err
		}
	}
	next.altered = next.altered || changed || answered
	if _, err := next.variables.replaceValue(diff, "/variables", orEmpty(after.valueOf("variables")), '{'); err != nil {
		return nil, err
	}
	if _, err := next.shared.replaceValue(diff, "/metadata/shared", orEmpty(after.valueOf("metadata").valueOf("shared")), '{'); err != nil {
		return nil, err
	}
	*s = next
	return diff.list, nil
}

// orEmpty returns t, or an empty object if t is missing or null.
func orEmpty(t *tree) *tree {
	if t.isNull() {
		return &tree{kind: '{', raw: []byte("{}")}
	}
	return t
}

// applyResponse applies the response, and reports whether it has changed.
func (s *state) applyResponse(diff *changes, after *tree) (bool, error) {
	if s.event != hookdef.Result {
		if !after.isNull() {
			return false, fmt.Errorf("the hook set context.response, but a hook that handles the %s of a call has no response", s.event)
		}
		return false, nil
	}
	if after.isNull() {
		if s.sent {
			return false, fmt.Errorf("the hook removed context.response; to withhold a response, return {continue: false, error: {...}}")
		}
		s.answered, after = false, nil
	}
	changed, err := s.response.replaceValue(diff, "/response", after, '{')
	if err != nil {
		return false, err
	}
	if changed && !s.response.isEmpty() {
		if err := checkResponse(s.method, after); err != nil {
			return false, err
		}
		s.answered = s.answered || !s.sent
	}
	return changed, nil
}

// replaceValue applies a value that a script left, and reports whether it has changed.
// after is nil if the script removed the value; otherwise it must be of the given kind.
func (v *value) replaceValue(diff *changes, at doc.Pointer, after *tree, kind byte) (bool, error) {
	before, err := v.decodeTree()
	if err != nil {
		return false, err
	}
	switch {
	case after != nil && after.kind != kind:
		return false, fmt.Errorf("the hook set context%s to a value that is not an object", dottedPath(at))
	case after == nil && before == nil:
		return false, nil
	case after == nil:
		diff.addChange("remove", at, before, nil)
		*v = value{}
		return true, nil
	case before == nil:
		diff.addChange("add", at, nil, after)
		*v = value{raw: after.raw}
		return true, nil
	}
	merged, same := diff.mergeValue(at, before, after)
	if !same {
		*v = value{raw: merged}
	}
	return !same, nil
}

// dottedPath formats a pointer like a property access in a script.
func dottedPath(at doc.Pointer) string {
	return string(bytes.ReplaceAll([]byte(at), []byte("/"), []byte(".")))
}

// checkResponse checks the form of a response that a hook has set or changed, because a
// client cannot read a response in a different form.
func checkResponse(method hookdef.Type, response *tree) error {
	list, member, kind := "tools", "name", "tool"
	switch method {
	case hookdef.ToolsCall:
		list, member, kind = "content", "type", "part of the content"
	case hookdef.ResourceRead:
		list, member, kind = "contents", "uri", "part of the contents"
	case hookdef.PromptGet:
		list, member, kind = "messages", "role", "message"
	default:
	}
	items := response.valueOf(list)
	if items == nil || items.kind != '[' {
		return fmt.Errorf("the hook set a response without the list %q, which every response to %s requires", list, method)
	}
	for i, item := range items.kids {
		if text := item.valueOf(member); item.kind != '{' || text == nil || text.kind != '"' || text.text == "" {
			return fmt.Errorf("the hook set a response in which %s[%d] has no %q, which every %s requires", list, i, member, kind)
		}
	}
	return nil
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
