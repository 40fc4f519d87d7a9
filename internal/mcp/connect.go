package mcp

import (
	"context"
	"crypto/rand"
	"encoding/json"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/evidence"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	"github.com/guideway-dev/guideway/internal/platform/digest"
	"github.com/guideway-dev/guideway/internal/platform/jsontext"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/workflow/criteria"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// connectLifetime is the time in which guideway connect must answer a request: each check
	// may take criteria.MaxTimeout.
	connectLifetime = 2 * criteria.MaxTimeout
	// maxConnectAnswer is the maximum size of an answer, in bytes.
	maxConnectAnswer = 4 << 20
	// maxConnectHost bounds the name of a computer, in characters.
	maxConnectHost = 253
)

// connectRequest is a sealed evidence.ConnectRequest, which guideway connect answers by
// repeating the call.
type connectRequest string

// newResult returns the result with the request. Its text is for a client that is not
// guideway connect.
func (r connectRequest) newResult() *mcp.CallToolResult {
	result := newErrorResult((*run.ConnectNeeded)(nil).Error())
	result.Meta = mcp.Meta{evidence.ConnectMeta: string(r)}
	return result
}

// requestChecks returns the request to guideway connect for a call.
func (r *responder) requestChecks(ctx context.Context, c call, needed *run.ConnectNeeded) (any, error) {
	hash, err := hashCall(c)
	if err != nil {
		return nil, err
	}
	sealed, err := r.forms.sealState(ctx, kindConnect, evidence.ConnectRequest{
		User: c.caller.User, Client: c.caller.Client, Call: hash, Nonce: rand.Text(), Expires: r.forms.now().Add(connectLifetime),
		ProjectPath: needed.ProjectPath, Checks: needed.Checks, Done: c.caller.Connect.Results,
	})
	return connectRequest(sealed), err
}

// hashCall returns the hash of the tool and the arguments of a call.
func hashCall(c call) (string, error) {
	text, err := jsontext.Marshal(map[string]any{"tool": c.tool.Name, "arguments": map[string]any(c.arguments)})
	return digest.Hex(string(text)), err
}

// redeemChecks returns the guideway connect process of a call with its answer, if the call
// contains one; nil without a process. An answer is accepted once, for the call, the user and
// the client of its request.
func (r *responder) redeemChecks(ctx context.Context, c call) (*run.Connected, error) {
	if !r.connectChecks || c.req.Extra == nil || c.req.Extra.Header.Get(evidence.ConnectHeader) == "" {
		return nil, nil
	}
	connected := &run.Connected{Host: plainLine(c.req.Extra.Header.Get(evidence.ConnectHeader), maxConnectHost), Foreign: !auth.OpensApprovals(ctx)}
	given, ok := c.req.Params.Meta[evidence.ConnectMeta]
	if !ok {
		return connected, nil
	}
	if err := r.readChecks(ctx, c, given, connected); err != nil {
		return nil, guideway.Errorf(guideway.CodeForbidden, "the answer of guideway connect is refused: %w", err).
			WithFix("call %s again without the answer", c.tool.Name)
	}
	return connected, nil
}

// readChecks checks an answer and adds it to connected.
func (r *responder) readChecks(ctx context.Context, c call, given any, connected *run.Connected) error {
	var a evidence.ConnectAnswer
	var asked evidence.ConnectRequest
	text, err := json.Marshal(given)
	if err != nil || len(text) > maxConnectAnswer || json.Unmarshal(text, &a) != nil {
		return guideway.Errorf(guideway.CodeInvalid, "it is malformed, or larger than %d MiB", maxConnectAnswer>>20)
	}
	if err := r.forms.unsealState(ctx, kindConnect, a.Sealed, &asked); err != nil {
		return guideway.Errorf(guideway.CodeForbidden, "it answers no request of this server")
	}
	hash, err := hashCall(c)
	switch {
	case err != nil:
		return err
	case asked.User != c.caller.User || asked.Client != c.caller.Client:
		return guideway.Errorf(guideway.CodeForbidden, "it answers a request to another user or client")
	case asked.Call != hash:
		return guideway.Errorf(guideway.CodeForbidden, "it answers a request about another call")
	case !r.forms.now().Before(asked.Expires):
		return guideway.Errorf(guideway.CodeForbidden, "it came after the time limit of %s", connectLifetime)
	case len(a.Results) != len(asked.Checks) && a.Refusal == "":
		return guideway.Errorf(guideway.CodeInvalid, "it has %d results for %d checks", len(a.Results), len(asked.Checks))
	}
	if err := r.forms.useOnce(ctx, "connect/"+asked.Nonce, asked.Expires, connectLifetime); err != nil {
		return guideway.Errorf(guideway.CodeForbidden, "the request was answered before")
	}
	return acceptAnswer(&asked, &a, connected)
}

// acceptAnswer adds the answer to a request to connected.
func acceptAnswer(asked *evidence.ConnectRequest, a *evidence.ConnectAnswer, connected *run.Connected) error {
	if a.Refusal != "" {
		connected.Err = guideway.Errorf(guideway.CodeUnavailable, "%s", plainLine(a.Refusal, 1000)).WithFix("%s", plainLine(a.Fix, 1000))
		return nil
	}
	if len(asked.Checks) == 0 {
		if a.Workspace == nil || a.Workspace.Root == "" || a.Workspace.Host != connected.Host || len(a.Workspace.Dirty) > evidence.MaxDirty {
			return guideway.Errorf(guideway.CodeInvalid, "it lacks the workspace on the computer %s", connected.Host)
		}
		connected.Workspace = a.Workspace
		return nil
	}
	connected.Run, connected.Results = asked.Checks[0].Run, asked.Done
	for i, result := range a.Results {
		accepted, err := asked.Checks[i].AcceptResult(result)
		if err != nil {
			return err
		}
		connected.Results = append(connected.Results, accepted)
	}
	return nil
}
