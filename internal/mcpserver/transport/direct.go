package transport

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Direct has the tools whose plain calls are answered without the SDK, which decodes
// a call twice and encodes its answer three times: most of what a short call costs.
// They ask the client nothing on their way, tell it no progress, and are done so soon
// that nobody takes a call back.
type Direct interface {
	// Direct gives what calls a tool, with all that stands around the call; nil for
	// a tool that the SDK calls. The answer is as that of a ToolHandler, and its
	// structured content is a json.RawMessage of one line.
	Direct(name string) mcp.ToolHandler
	// Implementation is what the server says of itself.
	Implementation() *mcp.Implementation
}

// directCall is a call that is answered without the SDK.
type directCall struct {
	id      jsonrpc.ID
	req     *mcp.CallToolRequest
	handler mcp.ToolHandler
	modern  bool
	server  *mcp.Implementation
}

// takeDirect gives a call that may be answered without the SDK, or nil. The SDK
// judges whatever is not as nearly all calls are.
func takeDirect(d Direct, session *mcp.ServerSession, msg jsonrpc.Message) *directCall {
	req, ok := msg.(*jsonrpc.Request)
	if d == nil || session == nil || !ok || req.Method != "tools/call" || !req.IsCall() {
		return nil
	}
	name, arguments, meta, ok := plainCall(req.Params)
	if !ok {
		return nil
	}
	handler := d.Direct(string(name))
	if handler == nil {
		return nil
	}
	params := &mcp.CallToolParamsRaw{Name: string(name), Arguments: arguments}
	if meta != nil && json.Unmarshal(meta, &params.Meta) != nil {
		return nil
	}
	era := eraOf(session, params.Meta)
	if era == eraUnsure {
		return nil
	}
	return &directCall{
		id: req.ID, req: &mcp.CallToolRequest{Session: session, Params: params}, handler: handler,
		modern: era == eraModern, server: d.Implementation(),
	}
}

// plainCall reads the params of a call: a name without escapes, arguments and _meta
// that are objects, each at most once, and nothing else. The text is valid JSON.
func plainCall(params []byte) (name, arguments, meta []byte, ok bool) {
	s := &scanner{text: params}
	if !s.next('{') {
		return nil, nil, nil, false
	}
	for range 3 {
		key := s.plainString()
		if !s.next(':') {
			return nil, nil, nil, false
		}
		ok := false
		switch string(key) {
		case "name":
			ok = name == nil
			name = s.plainString()
		case "arguments":
			ok = arguments == nil && s.object()
			arguments = params[s.begin:s.pos]
		case "_meta":
			ok = meta == nil && s.object()
			meta = params[s.begin:s.pos]
		}
		if !ok {
			return nil, nil, nil, false
		}
		if s.next('}') {
			break
		}
		if !s.next(',') {
			return nil, nil, nil, false
		}
	}
	s.space()
	return name, arguments, meta, len(name) > 0 && s.pos == len(params)
}

// era says by which rules a call is answered.
type era int

const (
	eraUnsure era = iota
	eraLegacy
	eraModern
)

// eraOf tells the era of a call that is of the same one as those before it.
func eraOf(session *mcp.ServerSession, meta mcp.Meta) era {
	first := session.InitializeParams()
	if first == nil {
		return eraUnsure
	}
	version, has := meta[mcp.MetaKeyProtocolVersion]
	switch {
	case !has && first.ProtocolVersion < ModernVersion:
		return eraLegacy
	case version == ModernVersion && first.ProtocolVersion == ModernVersion && saysItsClient(meta):
		return eraModern
	}
	return eraUnsure
}

// saysItsClient tells whether a request of the modern era says of its client what it
// must, and nothing that does not read.
func saysItsClient(meta mcp.Meta) bool {
	if _, ok := meta[mcp.MetaKeyClientCapabilities].(map[string]any); !ok {
		return false
	}
	text, err := json.Marshal(meta)
	if err != nil {
		return false
	}
	said := struct {
		Client       *mcp.Implementation `json:"io.modelcontextprotocol/clientInfo"`
		Capabilities *struct {
			mcp.ClientCapabilities
			Roots struct {
				ListChanged bool `json:"listChanged"`
			} `json:"roots"`
		} `json:"io.modelcontextprotocol/clientCapabilities"`
	}{}
	_, named := meta[mcp.MetaKeyClientInfo]
	return json.Unmarshal(text, &said) == nil && named == (said.Client != nil)
}

// answer makes the call and gives the message that answers it.
func (c *directCall) answer(ctx context.Context) *jsonrpc.Response {
	result, err := c.handler(ctx, c.req)
	if err != nil {
		return &jsonrpc.Response{ID: c.id, Error: err}
	}
	text, err := c.encode(result)
	if err != nil {
		return &jsonrpc.Response{ID: c.id, Error: fmt.Errorf("write the answer: %w", err)}
	}
	return &jsonrpc.Response{ID: c.id, Result: text}
}

var errNotDirect = errors.New("a tool that is called without the SDK has an answer that needs it")

// encode writes a result as the SDK does, but checks nothing again that was made here.
func (c *directCall) encode(r *mcp.CallToolResult) (json.RawMessage, error) {
	if r == nil || r.InputRequests != nil || r.RequestState != "" || r.Meta != nil {
		return nil, errNotDirect
	}
	structured, ok := r.StructuredContent.(json.RawMessage)
	if !ok && r.StructuredContent != nil {
		return nil, errNotDirect
	}
	var b bytes.Buffer
	b.Grow(2*len(structured) + len(structured)/4 + 256)
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	write := func(value any) error {
		if err := enc.Encode(value); err != nil {
			return err
		}
		b.Truncate(b.Len() - 1) // the end of the line
		return nil
	}
	b.WriteByte('{')
	if c.modern {
		b.WriteString(`"_meta":`)
		if err := write(mcp.Meta{mcp.MetaKeyServerInfo: c.server}); err != nil {
			return nil, err
		}
		b.WriteByte(',')
	}
	b.WriteString(`"content":[`)
	for i, one := range r.Content {
		text, ok := one.(*mcp.TextContent)
		if !ok || text.Meta != nil || text.Annotations != nil {
			return nil, errNotDirect
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`{"type":"text","text":`)
		if err := write(text.Text); err != nil {
			return nil, err
		}
		b.WriteByte('}')
	}
	b.WriteByte(']')
	if len(structured) > 0 {
		b.WriteString(`,"structuredContent":`)
		b.Write(structured)
	}
	if r.IsError {
		b.WriteString(`,"isError":true`)
	}
	if c.modern {
		b.WriteString(`,"resultType":"complete"`)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}
