package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/upstream"
	"github.com/guideway-dev/guideway/internal/upstream/wire"
)

// question is one thing that an upstream wants to know.
type question struct {
	ID     string
	Method string
	Params json.RawMessage
}

// resultType marks a result in the modern era.
const resultType = "resultType"

// wanted takes apart a result that asks for input; nil is a result that does
// not.
func wanted(result json.RawMessage) (questions []question, state string, err error) {
	asks := false
	var requests json.RawMessage
	err = wire.Each(result, func(key string, value json.RawMessage) error {
		switch key {
		case resultType:
			asks = string(value) == `"input_required"`
		case "inputRequests":
			requests = value
		case "requestState":
			return json.Unmarshal(value, &state)
		}
		return nil
	})
	if err != nil || !asks {
		return nil, "", err
	}
	questions = []question{}
	if requests == nil || string(requests) == "null" {
		return questions, state, nil
	}
	err = wire.Each(requests, func(id string, value json.RawMessage) error {
		members, err := wire.Members(value, "method", "params")
		if err != nil {
			return err
		}
		q := question{ID: id, Params: members["params"]}
		questions = append(questions, q)
		return json.Unmarshal(members["method"], &questions[len(questions)-1].Method)
	})
	if len(questions) > maxQuestions {
		return nil, "", fmt.Errorf("it asks %d questions at once", len(questions))
	}
	return questions, state, err
}

// maxQuestions bounds what is asked at once.
const maxQuestions = 16

// missingCapability is the protocol's error for a client that cannot be asked.
const missingCapability = -32021

// allowed checks what an upstream wants to know against what the client can be
// asked, and marks who asks.
func (g *Gateway) allowed(c *Client, m *member, questions []question) ([]question, error) {
	for i, q := range questions {
		if ok, capability := c.can(q.Method); !ok {
			data := wire.Object(wire.Member{Key: "requiredCapabilities", Value: wire.Object(wire.Member{Key: capability, Value: json.RawMessage(`{}`)})})
			return nil, &wire.Error{Code: missingCapability, Message: "the upstream needs a client that has the capability " + capability, Data: data}
		}
		params, err := checked(c, m, q.Method, q.Params)
		if err != nil {
			return nil, &wire.Error{Code: wire.CodeInternal, Message: err.Error()}
		}
		questions[i].Params = params
	}
	return questions, nil
}

// checked is a question as the person may be shown it: with the name of who
// asks, without hidden characters, and with no address but one of the web.
func checked(c *Client, m *member, method string, params json.RawMessage) (json.RawMessage, error) {
	if method == "sampling/createMessage" {
		return narrowed(params)
	}
	if method != "elicitation/create" {
		return params, nil
	}
	members, err := wire.Members(params, "mode", "message", "url", "requestedSchema")
	if err != nil {
		return nil, fmt.Errorf("the upstream asks in a form that cannot be shown: %w", err)
	}
	if string(members["mode"]) == `"url"` {
		var form struct {
			URL json.RawMessage `json:"url"`
		}
		if json.Unmarshal(c.Can.Elicitation, &form) != nil || form.URL == nil {
			return nil, errors.New("the upstream wants a page to be opened, and the client cannot do that")
		}
		var address string
		if json.Unmarshal(members["url"], &address) != nil || !webPage(address) {
			return nil, errors.New("the upstream wants a page to be opened that is not one of the web")
		}
	}
	if m.NoPrefix {
		return params, nil
	}
	var message string
	_ = json.Unmarshal(members["message"], &message)
	message, _ = described(message)
	if schema := members["requestedSchema"]; schema != nil {
		shown, _ := cleared(schema)
		params, err = wire.With(params, wire.Member{Key: "requestedSchema", Value: shown})
		if err != nil {
			return nil, err
		}
	}
	return wire.With(params, wire.Member{Key: "message", Value: wire.Text(fmt.Sprintf("The MCP server %q asks: %s", m.Name(), message))})
}

// narrowed is a question to the client's model without what that would add to it of
// other servers: to the client all upstreams are one server, and none is to learn what
// another one has said.
func narrowed(params json.RawMessage) (json.RawMessage, error) {
	members, err := wire.Members(params, "includeContext")
	if err != nil {
		return nil, fmt.Errorf("the upstream asks in a form that cannot be shown: %w", err)
	}
	if members["includeContext"] == nil {
		return params, nil
	}
	return wire.With(params, wire.Member{Key: "includeContext", Value: json.RawMessage(`"none"`)})
}

// webPage takes addresses that a browser shows with their host: no scripts, no
// files, and no name and password that look like another host.
func webPage(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.User != nil {
		return false
	}
	host := u.Hostname()
	return u.Scheme == "https" || u.Scheme == "http" && (host == "localhost" || host == "127.0.0.1" || host == "::1")
}

// asker brings the questions of an upstream of the legacy era to a client of the
// legacy era.
func (g *Gateway) asker(c *Client, m *member) upstream.Asker {
	return func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, *wire.Error) {
		questions, err := g.allowed(c, m, []question{{Method: method, Params: params}})
		var failure *wire.Error
		if errors.As(err, &failure) {
			return nil, failure
		}
		if c.Ask == nil {
			return nil, &wire.Error{Code: wire.CodeMethodNotFound, Message: "the client cannot be asked"}
		}
		return c.Ask(ctx, method, questions[0].Params)
	}
}

// askAll asks a client of the legacy era and gives the answers as an upstream of
// the modern era wants them.
func (g *Gateway) askAll(ctx context.Context, c *Client, questions []question) (json.RawMessage, error) {
	answers := make([]wire.Member, len(questions))
	failures := make([]*wire.Error, len(questions))
	var asked sync.WaitGroup
	for i, q := range questions {
		asked.Go(func() {
			result, failure := c.Ask(ctx, q.Method, q.Params)
			answers[i], failures[i] = wire.Member{Key: q.ID, Value: result}, failure
		})
	}
	asked.Wait()
	for _, failure := range failures {
		if failure != nil {
			return nil, failure
		}
	}
	return wire.Object(answers...), nil
}

// asking is the result that has a client of the modern era asked.
func (c *Client) asking(questions []question, state string) (json.RawMessage, error) {
	requests := make([]wire.Member, len(questions))
	for i, q := range questions {
		params := q.Params
		if params == nil { // a request for roots may do without, and clients expect them
			params = json.RawMessage(`{}`)
		}
		requests[i] = wire.Member{Key: q.ID, Value: wire.Object(
			wire.Member{Key: "method", Value: wire.Text(q.Method)}, wire.Member{Key: "params", Value: params})}
	}
	return wire.Object(
		wire.Member{Key: resultType, Value: json.RawMessage(`"input_required"`)},
		wire.Member{Key: "inputRequests", Value: wire.Object(requests...)},
		wire.Member{Key: "requestState", Value: wire.Text(state)}), nil
}

// final is the result of a call that is done, in the form of the client's era. What a
// client would take for a question of ours must not be in it: no such question was
// checked, and clients ask by what they find there, whatever their era.
func (c *Client) final(result json.RawMessage, modern bool) (json.RawMessage, error) {
	marks := 0
	err := wire.Each(result, func(key string, value json.RawMessage) error {
		switch len(key) {
		case len(resultType), len("inputRequests"), len("requestState"):
		default:
			return nil
		}
		switch {
		case strings.EqualFold(key, resultType):
			if marks++; marks == 1 && key == resultType && (modern || string(value) == `"complete"`) {
				return nil
			}
		case !strings.EqualFold(key, "inputRequests") && !strings.EqualFold(key, "requestState"), string(value) == "null":
			return nil
		}
		return guideway.Errorf(guideway.CodeUnavailable, "the server has done the call, and its answer cannot be used: it asks for input in a way that no server may (%q)", key).
			WithFix("look at the server before you call again")
	})
	if err != nil {
		return nil, err
	}
	return c.finish(result, nil)
}

// finish gives a result the form of the client's era.
func (c *Client) finish(result json.RawMessage, err error) (json.RawMessage, error) {
	if err != nil || !c.Modern {
		return result, err
	}
	marked := false
	if err := wire.Each(result, func(key string, _ json.RawMessage) error {
		marked = marked || key == resultType
		return nil
	}); err != nil || marked {
		return result, err
	}
	const mark = `{"resultType":"complete"`
	out := append(make([]byte, 0, len(result)+len(mark)+1), mark...)
	begin := 0
	for result[begin] != '{' {
		begin++
	}
	rest := result[begin+1:]
	for len(rest) > 0 && (rest[0] == ' ' || rest[0] == '\n' || rest[0] == '\r' || rest[0] == '\t') {
		rest = rest[1:]
	}
	if rest[0] != '}' {
		out = append(out, ',')
	}
	return append(out, rest...), nil
}
