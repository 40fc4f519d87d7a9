package gateway

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/gateway/jsonrpc"
	"github.com/guideway-dev/guideway/internal/gateway/results"
)

// Results keeps large results.
type Results interface {
	// Add stores the result of a client and returns its reference.
	Add(owner string, result []byte) (ref string, err error)
	// Get returns a result to its owner.
	Get(owner, ref string) ([]byte, error)
	// Expiry returns the time at which a result that is stored now expires; zero means never.
	Expiry() time.Time
}

// resultRead is the tool that reads parts of a stored result.
const resultRead = "result_read"

// resultTools returns the definition of result_read, if large results are stored.
func (g *Gateway) resultTools() []json.RawMessage {
	if g.opts.Results == nil {
		return nil
	}
	return []json.RawMessage{json.RawMessage(`{"name":"result_read","title":"Read a stored result","description":"Read a part of a stored large tool result. path, then lines, then search ` +
		`select text of the part; without them, the whole part is selected. Returns at most 10,000 bytes of the selection, from offset.",` +
		`"inputSchema":{"type":"object","properties":{"ref":{"type":"string","description":"Reference from the tool's answer"},` +
		`"part":{"type":"string","description":"Part of the result, such as content[0]; the largest by default"},` +
		`"path":{"type":"string","description":"JSON Pointer into a part that is JSON, such as /items/0/name"},` +
		`"lines":{"type":"string","description":"Number of a line or a range, such as 120-180 or 120-"},` +
		`"search":{"type":"string","description":"Text to find; returns the lines that contain it, with their numbers"},` +
		`"offset":{"type":"integer","minimum":0,"description":"First byte of the selection to return, default 0"}},"required":["ref"],"additionalProperties":false},` +
		`"annotations":{"readOnlyHint":true}}`)}
}

// withoutOutputSchema returns a tool without its output schema: a summary of a large result
// has no structured content.
func withoutOutputSchema(shown json.RawMessage) json.RawMessage {
	var kept []jsonrpc.Member
	err := jsonrpc.Each(shown, func(key string, value json.RawMessage) error {
		if key != "outputSchema" {
			kept = append(kept, jsonrpc.Member{Key: key, Value: value})
		}
		return nil
	})
	if err != nil {
		return shown
	}
	return jsonrpc.Object(kept...)
}

// storeLarge stores a large result of a client's call or task and returns its summary. A
// small result, a question and a result that cannot be stored are returned unchanged.
func (g *Gateway) storeLarge(c *Client, m *member, result json.RawMessage) json.RawMessage {
	if g.opts.Results == nil || int64(len(result)) <= g.opts.LargeResult {
		return result
	}
	members, err := jsonrpc.Members(result, "isError", resultType)
	if kind := string(members[resultType]); err != nil || kind != "" && kind != `"complete"` {
		return result
	}
	summary, err := g.summarize(c, result, members["isError"])
	if err != nil {
		g.logger.Warn("a large result was not stored, so the client gets all of it", "upstream", m.Name(), "error", err)
		return result
	}
	return summary
}

// summarize stores a result and returns its summary as a result.
func (g *Gateway) summarize(c *Client, result, isError json.RawMessage) (json.RawMessage, error) {
	if _, err := results.Parts(result); err != nil {
		return nil, err
	}
	ref, err := g.opts.Results.Add(c.stateOwner(), result)
	if err != nil {
		return nil, err
	}
	text, err := results.Summarize(result, ref, g.opts.Results.Expiry())
	if err != nil {
		return nil, err
	}
	shown := []jsonrpc.Member{{Key: "content", Value: textContent(json.RawMessage(text))}}
	if isError != nil {
		shown = append(shown, jsonrpc.Member{Key: "isError", Value: isError})
	}
	return c.finishResult(jsonrpc.Object(shown...))
}

// readResult answers a call of result_read. The selected bytes are one block of content; a
// second block states how to continue.
func (g *Gateway) readResult(c *Client, r Request) (json.RawMessage, error) {
	refuse := func(err error) (json.RawMessage, error) {
		return c.finishResult(toolError(guideway.ErrorCode(err), err.Error(), guideway.ErrorFix(err)))
	}
	q, err := parseQuery(r.Arguments)
	if err != nil {
		return refuse(err)
	}
	stored, err := g.opts.Results.Get(c.stateOwner(), q.Ref)
	if err != nil {
		return refuse(err)
	}
	answer, err := results.Read(stored, q)
	if err != nil {
		return refuse(err)
	}
	blocks := []json.RawMessage{textBlock(answer.Text)}
	if next := answer.From + len(answer.Text); answer.From > 0 || next < answer.Size {
		text := fmt.Sprintf("These are %d of %d bytes, from offset %d.", len(answer.Text), answer.Size, answer.From)
		if next < answer.Size {
			text += fmt.Sprintf(" To continue, repeat the call with \"offset\": %d.", next)
		}
		blocks = append(blocks, textBlock(text))
	}
	return c.finishResult(jsonrpc.Object(jsonrpc.Member{Key: "content", Value: jsonrpc.List(blocks...)}))
}

// parseQuery reads the arguments of result_read.
func parseQuery(arguments json.RawMessage) (results.Query, error) {
	var q results.Query
	names := []string{"ref", "part", "path", "lines", "search", "offset"}
	invalid := func(reason string) (results.Query, error) {
		return results.Query{}, guideway.Errorf(guideway.CodeInvalid, "the arguments are invalid: %s", reason).
			WithFix(`call result_read with {"ref": "result_…", "lines": "1-50"}, or with path, search or offset instead of lines`)
	}
	if arguments == nil {
		return invalid("ref is missing")
	}
	unknown := ""
	err := jsonrpc.Each(arguments, func(key string, _ json.RawMessage) error {
		if !slices.Contains(names, key) {
			unknown = key
		}
		return nil
	})
	switch {
	case err != nil:
		return invalid(err.Error())
	case unknown != "":
		return invalid(fmt.Sprintf("unknown parameter %.60q; the parameters are %s", unknown, strings.Join(names, ", ")))
	}
	if json.Unmarshal(arguments, &q) != nil {
		return invalid("offset must be an integer, and all other parameters must be strings")
	}
	if q.Ref == "" {
		return invalid("ref is missing")
	}
	return q, nil
}
