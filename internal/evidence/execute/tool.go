package execute

import (
	"context"
	"fmt"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/jsontext"
	"github.com/guideway-dev/guideway/internal/workflow/expr"
)

// executeTool calls a tool of the gateway. A tool that reports an error fails.
func (j *job) executeTool(ctx context.Context) error {
	if j.opts.Tools == nil {
		return guideway.Errorf(guideway.CodeUnavailable, "the tool %s cannot be called: this command has no gateway", j.rule.Tool).
			WithFix("execute the check in a run that a client of a Guideway server continues")
	}
	if send := j.request.Progress; send != nil {
		send("calls the tool " + j.rule.Tool)
	}
	result, err := j.opts.Tools.CallTool(ctx, j.rule.Tool, j.rule.Arguments)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case guideway.ErrorCode(err) == guideway.CodeNotFound || guideway.ErrorCode(err) == guideway.CodeForbidden:
		return err
	case err != nil:
		j.giveUp(fmt.Sprintf("the call of the tool %s failed: %v", j.rule.Tool, err))
		return nil
	}
	shown := result.Text
	if result.Structured != nil {
		if encoded, err := jsontext.Marshal(result.Structured); err == nil {
			shown = string(encoded)
		}
	}
	out := newOutput(int64(len(shown)))
	_, _ = out.Write([]byte(shown))
	out.record(&j.result)
	condition := j.rule.ResultCondition()
	switch {
	case result.IsError:
		j.fail(fmt.Sprintf("the tool %s reported an error: %s", j.rule.Tool, shorten(result.Text, 500)))
	case j.rule.Result == nil || condition.Holds(lookUp(result.Structured)):
		j.pass()
	default:
		j.fail(fmt.Sprintf("the result of the tool %s does not meet the condition: %s", j.rule.Tool, condition))
	}
	return nil
}

// lookUp returns the variables of a condition on a structured result: its members, or the
// variable "result" if it is no object.
func lookUp(structured any) expr.Lookup {
	if object, ok := structured.(map[string]any); ok {
		return expr.Map(object)
	}
	return expr.Map(map[string]any{"result": structured})
}
