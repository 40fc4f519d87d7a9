package gateway

import (
	"context"
	"crypto/hmac"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/gateway/jsonrpc"
	"github.com/guideway-dev/guideway/internal/gateway/upstream"
)

// The methods of the extension for tasks (SEP-2663).
const (
	methodGetTask    = "tasks/get"
	methodUpdateTask = "tasks/update"
	methodCancelTask = "tasks/cancel"
)

// taskResult is the type of a result that is the handle of a task.
const taskResult = "task"

// maxTaskID is the maximum length of an upstream's task ID.
const maxTaskID = 1 << 10

// taskHandle is a task of an upstream. Clients get it in sealed form in place of the task ID,
// so the gateway need not remember tasks, and no client can use a task of another client.
type taskHandle struct {
	Owner string `json:"o"`
	// Upstream and Spec identify the upstream and its configuration, and Tool is the
	// upstream's name of the called tool.
	Upstream string `json:"m"`
	Spec     string `json:"s"`
	Tool     string `json:"t"`
	ID       string `json:"i"`
}

// taskOwner returns the owner of the client's tasks: unlike request states, tasks of one user
// are separate for each client.
func (c *Client) taskOwner() string { return c.stateOwner() + "\x00" + c.Principal.Client }

func (s sealer) sealTask(h taskHandle) string {
	text, _ := json.Marshal(h) // Strings always marshal.
	body := base64.RawURLEncoding.EncodeToString(text)
	return body + "." + s.signText("task\x00"+body)
}

func (s sealer) openTask(sealed, owner string) (h taskHandle, ok bool) {
	body, mac, _ := strings.Cut(sealed, ".")
	if !hmac.Equal([]byte(mac), []byte(s.signText("task\x00"+body))) {
		return h, false
	}
	text, err := base64.RawURLEncoding.DecodeString(body)
	return h, err == nil && json.Unmarshal(text, &h) == nil && h.Owner == owner
}

// mayRunAsTask reports whether an upstream may answer a call with a task: both sides support
// tasks in the same protocol version, and no hook has to see the result of the call.
func (g *Gateway) mayRunAsTask(c *Client, s *upstream.Session, a route) bool {
	return a.method == methodCall && c.Modern && c.Capabilities.Extensions.Has(upstream.ExtensionTasks) && runsTasks(s.Info()) &&
		!g.hooksApply(methodCall, a.member, a.original)
}

// describeTaskError replaces the error of an upstream that runs a call only as a task, if the
// client supports tasks but a hook prevents them.
func (g *Gateway) describeTaskError(c *Client, a route, err error) error {
	var failure *jsonrpc.Error
	if !errors.As(err, &failure) || failure.Code != missingCapability || a.tasks || !c.Capabilities.Extensions.Has(upstream.ExtensionTasks) ||
		!strings.Contains(string(failure.Data), upstream.ExtensionTasks) {
		return err
	}
	return guideway.Errorf(guideway.CodeRefused, "the tool runs only as a task, but a hook applies to its calls, and hooks do not see the results of tasks").
		WithFix("call another tool, or ask the user to exclude the tool from the hook graph")
}

// errTaskHandle returns the error for the handle of a task that the client did not ask for.
func errTaskHandle() error {
	return guideway.Errorf(guideway.CodeUnavailable, "the server started a task without being asked to, and the result of the task cannot be fetched").
		WithFix("check the effects of the call at the server before you repeat it")
}

// finishTask returns the result of a call that started a task, or of a request about a task.
func (g *Gateway) finishTask(c *Client, a route, result json.RawMessage) (json.RawMessage, error) {
	invalid := func(err error) error {
		return guideway.Errorf(guideway.CodeUnavailable, "the server's answer about a task is invalid: %w", err).
			WithFix("check at the server whether the task was carried out, before you repeat the call")
	}
	if err := jsonrpc.CheckUnique(result); err != nil {
		return nil, invalid(err)
	}
	members, err := jsonrpc.Members(result, "taskId", "inputRequests", "result", resultType)
	if err != nil {
		return nil, invalid(err)
	}
	id := jsonrpc.TextOf(members["taskId"])
	if a.method == methodCall {
		if id == "" || len(id) > maxTaskID {
			return nil, invalid(fmt.Errorf("the ID of the task must have 1 to %d bytes, but has %d", maxTaskID, len(id)))
		}
		sealed := g.sealer.sealTask(taskHandle{Owner: c.taskOwner(), Upstream: a.member.Name(), Spec: a.member.Spec.Hash(), Tool: a.original, ID: id})
		return jsonrpc.With(result, jsonrpc.Member{Key: "taskId", Value: jsonrpc.Text(sealed)},
			jsonrpc.Member{Key: "inputRequests"}, jsonrpc.Member{Key: "requestState"}, jsonrpc.Member{Key: "result"})
	}
	if a.method != methodGetTask {
		return c.finishResult(json.RawMessage(`{}`))
	}
	if id != a.original {
		return nil, invalid(errors.New("it is about another task than the requested one"))
	}
	set := []jsonrpc.Member{
		{Key: resultType, Value: json.RawMessage(`"complete"`)},
		{Key: "taskId", Value: jsonrpc.Text(a.shown)},
		{Key: "inputRequests"},
		{Key: "requestState"},
		{Key: "result"},
	}
	if requests := members["inputRequests"]; requests != nil {
		questions, err := parseQuestions(requests)
		if err != nil {
			return nil, invalid(err)
		}
		if questions, err = g.checkQuestions(c, a.member, questions); err != nil {
			return nil, err
		}
		set = append(set, jsonrpc.Member{Key: "inputRequests", Value: encodeQuestions(questions)})
	}
	if inner := members["result"]; inner != nil {
		if err := checkFinal(inner, true); err != nil {
			return nil, err
		}
		set = append(set, jsonrpc.Member{Key: "result", Value: g.storeLarge(c, a.member, g.rewriteURIs(c, a, inner))})
	}
	return jsonrpc.With(result, set...)
}

// errNoTask is the error for a task that does not exist or belongs to another client.
var errNoTask = &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "there is no such task for this client: the id is wrong, the task belongs to another client, its tool is no longer available, or this server was restarted"}

// aboutTask returns a function that answers the requests of a method about a task.
func (g *Gateway) aboutTask(method string) serveExtension {
	return func(ctx context.Context, c *Client, r Request, params map[string]json.RawMessage) (json.RawMessage, error) {
		switch {
		case !c.Modern:
			return nil, methodNotFound(method)
		case !c.Capabilities.Extensions.Has(upstream.ExtensionTasks):
			return nil, missingExtension(upstream.ExtensionTasks, "the client does not declare the extension "+upstream.ExtensionTasks)
		}
		shown := jsonrpc.TextOf(params["taskId"])
		if r.Header != nil && r.Header.Get("Mcp-Name") != shown {
			return nil, &jsonrpc.Error{Code: upstream.HeaderMismatch, Message: "the header Mcp-Name is not the taskId of the request"}
		}
		h, ok := g.sealer.openTask(shown, c.taskOwner())
		r.Name = h.Tool
		o := g.observe(c, method, &r)
		t := g.surfaceOf(c).findTask(h)
		if !ok || t == nil || !g.accessOf(ctx).allowsTool(t) || t.checkUse(c, false) != nil {
			return o.endUnrouted(ctx, errNoTask)
		}
		why := ""
		if t.blocked != "" {
			message, fix := blockedText("the tool "+t.name, t.blocked, t.member)
			why = message + "; " + fix
		} else if g.hooksApply(methodCall, t.member, t.original) {
			why = "the tool " + t.name + " has a hook since the task was started, and hooks do not see the results of tasks"
		}
		if why != "" {
			return o.endUnrouted(ctx, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the result of the task is withheld: " + why})
		}
		if known := t.member.Known(); known == nil || !runsTasks(known.Info) {
			return o.endUnrouted(ctx, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the upstream " + t.member.Name() + " no longer supports tasks"})
		}
		a := route{method: method, member: t.member, original: h.ID, shown: shown, tasks: true}
		if responses := params["inputResponses"]; method == methodUpdateTask && responses != nil {
			a.params = append(a.params, jsonrpc.Member{Key: "inputResponses", Value: responses})
		}
		return g.sendRouted(ctx, c, o, a, r)
	}
}

// findTask returns the tool of a task, or nil if its upstream is gone or was configured anew.
func (s *surface) findTask(h taskHandle) *tool {
	for _, m := range s.members {
		if m.Name() == h.Upstream && m.Spec.Hash() == h.Spec {
			return s.findOriginal(m, h.Tool)
		}
	}
	return nil
}
