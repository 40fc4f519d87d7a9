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
	"github.com/guideway-dev/guideway/internal/gateway/jsonrpc"
	"github.com/guideway-dev/guideway/internal/gateway/sanitize"
	"github.com/guideway-dev/guideway/internal/gateway/upstream"
)

// question is one input request of an upstream.
type question struct {
	ID     string
	Method string
	Params json.RawMessage
}

// resultType is the member of a result that contains its type in the modern protocol.
const resultType = "resultType"

// parseInputRequests parses a result that asks for input. For any other result it returns
// no questions.
func parseInputRequests(result json.RawMessage) (questions []question, state string, err error) {
	asks := false
	var requests json.RawMessage
	err = jsonrpc.Each(result, func(key string, value json.RawMessage) error {
		switch key {
		case resultType:
			asks = string(value) == `"input_required"`
		case "inputRequests":
			requests = value
		case "requestState":
			if json.Unmarshal(value, &state) != nil {
				return errors.New("its requestState is not a string")
			}
		}
		return nil
	})
	if err != nil || !asks {
		return nil, "", err
	}
	questions, err = parseQuestions(requests)
	return questions, state, err
}

// parseQuestions parses the questions of a result.
func parseQuestions(requests json.RawMessage) ([]question, error) {
	questions := []question{}
	if requests == nil || string(requests) == "null" {
		return questions, nil
	}
	err := jsonrpc.Each(requests, func(id string, value json.RawMessage) error {
		members, err := jsonrpc.Members(value, "method", "params")
		if err != nil {
			return err
		}
		q := question{ID: id, Params: members["params"]}
		questions = append(questions, q)
		if json.Unmarshal(members["method"], &questions[len(questions)-1].Method) != nil {
			return fmt.Errorf("the method of its input request %.40q is not a string", id)
		}
		return nil
	})
	if len(questions) > maxQuestions {
		return nil, fmt.Errorf("the result has %d questions; at most %d are allowed", len(questions), maxQuestions)
	}
	return questions, err
}

// maxQuestions is the maximum number of questions in one result.
const maxQuestions = 16

// missingCapability is the MCP error code for a client that lacks a capability.
const missingCapability = -32021

// checkQuestions checks the questions of an upstream against the capabilities of the
// client, and makes them safe to show to a person.
func (g *Gateway) checkQuestions(c *Client, m *member, questions []question) ([]question, error) {
	for i, q := range questions {
		if ok, capability := c.supports(q.Method); !ok {
			data := jsonrpc.Object(jsonrpc.Member{Key: "requiredCapabilities", Value: jsonrpc.Object(jsonrpc.Member{Key: capability, Value: json.RawMessage(`{}`)})})
			return nil, &jsonrpc.Error{Code: missingCapability, Message: "the upstream " + m.Name() + " requires the client capability " + capability, Data: data}
		}
		params, err := sanitizeQuestion(c, m, q.Method, q.Params)
		if err != nil {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: fmt.Sprintf("the upstream %s sent a question that cannot be passed on: %v", m.Name(), err)}
		}
		questions[i].Params = params
	}
	return questions, nil
}

// sanitizeQuestion returns a question that is safe to show to a person. A sampling request
// asks for no messages of other servers, and an elicitation opens only web pages. An
// elicitation also gets the upstream's name and loses its hidden characters, unless the
// upstream's tools have no prefix.
func sanitizeQuestion(c *Client, m *member, method string, params json.RawMessage) (json.RawMessage, error) {
	if method == "sampling/createMessage" {
		return withoutServerContext(params)
	}
	if method != "elicitation/create" {
		return params, nil
	}
	members, err := jsonrpc.Members(params, "mode", "message", "url", "requestedSchema")
	if err != nil {
		return nil, err
	}
	if string(members["mode"]) == `"url"` {
		var form struct {
			URL json.RawMessage `json:"url"`
		}
		if json.Unmarshal(c.Capabilities.Elicitation, &form) != nil || form.URL == nil {
			return nil, errors.New("it asks to open a page, which the client does not support")
		}
		var address string
		if json.Unmarshal(members["url"], &address) != nil || !isWebPage(address) {
			return nil, errors.New("it asks to open a page with an unsafe URL: the URL must be https, or http on this computer, and must not have a user name")
		}
	}
	if m.NoPrefix {
		return params, nil
	}
	var message string
	_ = json.Unmarshal(members["message"], &message)
	message, _ = sanitize.Description(message)
	if schema := members["requestedSchema"]; schema != nil {
		shown, _ := sanitize.Object(schema)
		params, err = jsonrpc.With(params, jsonrpc.Member{Key: "requestedSchema", Value: shown})
		if err != nil {
			return nil, err
		}
	}
	return jsonrpc.With(params, jsonrpc.Member{Key: "message", Value: jsonrpc.Text(fmt.Sprintf("The MCP server %q asks: %s", m.Name(), message))})
}

// withoutServerContext sets includeContext of a sampling request to "none". To the client
// all upstreams are one server, and no upstream may receive messages of another.
func withoutServerContext(params json.RawMessage) (json.RawMessage, error) {
	members, err := jsonrpc.Members(params, "includeContext")
	if err != nil {
		return nil, err
	}
	if members["includeContext"] == nil {
		return params, nil
	}
	return jsonrpc.With(params, jsonrpc.Member{Key: "includeContext", Value: json.RawMessage(`"none"`)})
}

// isWebPage reports whether an address is an https URL, or an http URL on this machine,
// without user info: no script, no file, and no name or password that looks like a
// different host.
func isWebPage(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.User != nil {
		return false
	}
	host := u.Hostname()
	return u.Scheme == "https" || u.Scheme == "http" && (host == "localhost" || host == "127.0.0.1" || host == "::1")
}

// newAsker returns a function that forwards questions of a legacy upstream to a legacy
// client.
func (g *Gateway) newAsker(c *Client, m *member) upstream.Asker {
	return func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, *jsonrpc.Error) {
		questions, err := g.checkQuestions(c, m, []question{{Method: method, Params: params}})
		var failure *jsonrpc.Error
		if errors.As(err, &failure) {
			return nil, failure
		}
		if c.Ask == nil {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "the client does not support input requests"}
		}
		return c.Ask(ctx, method, questions[0].Params)
	}
}

// askAll sends questions to a legacy client and returns the answers in the form of the
// modern protocol.
func (g *Gateway) askAll(ctx context.Context, c *Client, questions []question) (json.RawMessage, error) {
	answers := make([]jsonrpc.Member, len(questions))
	failures := make([]*jsonrpc.Error, len(questions))
	var asked sync.WaitGroup
	for i, q := range questions {
		asked.Go(func() {
			result, failure := c.Ask(ctx, q.Method, q.Params)
			answers[i], failures[i] = jsonrpc.Member{Key: q.ID, Value: result}, failure
		})
	}
	asked.Wait()
	for _, failure := range failures {
		if failure != nil {
			return nil, failure
		}
	}
	return jsonrpc.Object(answers...), nil
}

// encodeQuestions returns questions in the form of the modern protocol.
func encodeQuestions(questions []question) json.RawMessage {
	requests := make([]jsonrpc.Member, len(questions))
	for i, q := range questions {
		params := q.Params
		if params == nil { // roots/list has optional params, but clients expect them.
			params = json.RawMessage(`{}`)
		}
		requests[i] = jsonrpc.Member{Key: q.ID, Value: jsonrpc.Object(
			jsonrpc.Member{Key: "method", Value: jsonrpc.Text(q.Method)}, jsonrpc.Member{Key: "params", Value: params})}
	}
	return jsonrpc.Object(requests...)
}

// inputResult returns the result that asks a modern client for input.
func (c *Client) inputResult(questions []question, state string) (json.RawMessage, error) {
	return jsonrpc.Object(
		jsonrpc.Member{Key: resultType, Value: json.RawMessage(`"input_required"`)},
		jsonrpc.Member{Key: "inputRequests", Value: encodeQuestions(questions)},
		jsonrpc.Member{Key: "requestState", Value: jsonrpc.Text(state)}), nil
}

// finalResult returns the result of a finished call in the client's protocol version; see
// checkFinal.
func (c *Client) finalResult(result json.RawMessage, modern bool) (json.RawMessage, error) {
	if err := checkFinal(result, modern); err != nil {
		return nil, err
	}
	return c.finishResult(result)
}

// checkFinal rejects a result that has a member twice, at any level: hooks, pins and the client
// could read different values. It also rejects a result that looks like an input request: that
// request was not checked, and a client of any version could act on it. It rejects the handle
// of a task too, because the client did not ask for a task.
func checkFinal(result json.RawMessage, modern bool) error {
	invalid := func(err error) error {
		return guideway.Errorf(guideway.CodeUnavailable, "the server carried out the call, but its answer is invalid: %w", err).
			WithFix("check the effects of the call at the server before you repeat it")
	}
	if err := jsonrpc.CheckUnique(result); err != nil {
		return invalid(err)
	}
	marks, task, content := 0, false, false
	err := jsonrpc.Each(result, func(key string, value json.RawMessage) error {
		switch len(key) {
		case len(resultType), len("inputRequests"), len("requestState"):
		default:
			task = task || key == taskResult && value[0] == '{'
			content = content || key == "content"
			return nil
		}
		switch {
		case key == resultType && string(value) == `"task"`:
			return errTaskHandle()
		case strings.EqualFold(key, resultType):
			if marks++; marks == 1 && key == resultType && (modern || string(value) == `"complete"`) {
				return nil
			}
		case !strings.EqualFold(key, "inputRequests") && !strings.EqualFold(key, "requestState"), string(value) == "null":
			return nil
		}
		return invalid(fmt.Errorf("it asks for input with %q", key))
	})
	if err == nil && task && !content && !modern {
		return errTaskHandle()
	}
	return err
}

// finishResult converts a result to the client's protocol version.
func (c *Client) finishResult(result json.RawMessage) (json.RawMessage, error) {
	if !c.Modern {
		return result, nil
	}
	marked := false
	if err := jsonrpc.Each(result, func(key string, _ json.RawMessage) error {
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
