package httpapi

import (
	"slices"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/gateway/holds"
	"github.com/guideway-dev/guideway/internal/gateway/requestlog"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	"github.com/guideway-dev/guideway/internal/platform/visible"
)

func (a *api) callRoutes() []route {
	return []route{
		{"GET", "/api/calls", auth.RightRead, a.listCalls},
		{"GET", "/api/calls/{id}", auth.RightContents, a.getCall},
		{"POST", "/api/calls/{id}/answer", auth.RightAnswer, withBody(a.answerCall)},
	}
}

const (
	callLimit    = 100
	maxCallLimit = 500
)

// callOwners returns the users whose held calls the caller sees: the caller and, for an
// approver, the other members of the caller's shared projects.
func (a *api) callOwners(c *call) []string {
	owners := []string{c.userName()}
	if a.Runs != nil && c.authGrant().Approves() {
		owners = append(owners, a.Runs.Peers(c.userName())...)
	}
	return owners
}

// findCall returns the held call that the path names.
func (a *api) findCall(c *call) (held holds.Call, err error) {
	for _, owner := range a.callOwners(c) {
		if held, err = a.Calls.Get(owner, c.PathValue("id")); err == nil && !a.mayUseCall(c, held) {
			held, err = holds.Call{}, guideway.Errorf(guideway.CodeNotFound, "there is no held call %.64q", c.PathValue("id"))
		}
		if guideway.ErrorCode(err) != guideway.CodeNotFound {
			break
		}
	}
	return held, err
}

// mayUseCall reports whether the caller sees a held call of one of callOwners: of another user
// only if the caller may use each run that the call may belong to.
func (a *api) mayUseCall(c *call, held holds.Call) bool {
	return held.User == c.userName() || a.Runs.MayUseAll(c.Context(), c.runCaller(), held.Runs)
}

// listCalls returns the held calls of the user, the newest first, without their arguments.
func (a *api) listCalls(c *call) (any, error) {
	status, limit := c.textParam("status"), int(c.intParam("limit", callLimit, 1, maxCallLimit))
	if c.err != nil {
		return nil, c.err
	}
	if status != "" && !slices.Contains(holds.Statuses(), holds.Status(status)) {
		return nil, guideway.Errorf(guideway.CodeInvalid, "unknown status %.40q", status).WithFix("use one of: waiting, approved, denied, used, expired")
	}
	list := []holds.Call{}
	for _, owner := range a.callOwners(c) {
		own, err := a.Calls.List(owner)
		if err != nil {
			return nil, err
		}
		list = append(list, slices.DeleteFunc(own, func(held holds.Call) bool { return !a.mayUseCall(c, held) })...)
	}
	slices.SortStableFunc(list, func(a, b holds.Call) int { return b.Created.Compare(a.Created) })
	list = slices.DeleteFunc(list, func(held holds.Call) bool { return status != "" && held.Status != holds.Status(status) })
	list = list[:min(limit, len(list))]
	for i := range list {
		list[i].Preview, list[i].Arguments = requestlog.PreviewArguments(list[i].Arguments), nil
	}
	return object{"calls": list}, nil
}

// getCall returns a held call with all its arguments, because a person must see all that is
// approved. The text keeps all digits of numbers, which JavaScript would round.
func (a *api) getCall(c *call) (any, error) {
	held, err := a.findCall(c)
	return object{"call": held, "text": visible.EscapeText(held.ShownArguments())}, err
}

// callAnswer is the request body that answers a held call.
type callAnswer struct {
	Approve *bool  `json:"approve"`
	Note    string `json:"note"`
}

// answerCall answers a held call. The credential must count as that of a person who approves.
func (a *api) answerCall(c *call, body callAnswer) (any, error) {
	by := c.runCaller()
	if !c.authGrant().Approves() {
		return nil, guideway.Errorf(guideway.CodeForbidden, "a held call needs the answer of a person, which this credential does not prove").
			WithFix("answer in a browser that is logged in with guideway open, or at a terminal: guideway calls approve %s", clipText(c.PathValue("id")))
	}
	if body.Approve == nil {
		return nil, guideway.Errorf(guideway.CodeInvalid, "the body does not say whether the call is approved").WithFix(`set "approve" to true or false`)
	}
	held, err := a.findCall(c)
	if err != nil {
		return nil, err
	}
	held, err = a.Calls.Answer(c.Context(), holds.AnswerRequest{ID: held.ID, User: held.User, Answer: holds.Answer{
		Approve: *body.Approve, By: by.User, Via: string(by.Via), Note: body.Note,
	}})
	held.Arguments = nil
	return object{"call": held}, err
}
