package calls

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/gateway/holds"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/spf13/cobra"
)

// answerOptions is the command line of guideway calls approve and deny.
type answerOptions struct {
	app     *app.App
	Call    string
	approve bool
}

// newAnswerCmd returns the command approve or deny.
func newAnswerCmd(a *app.App, approve bool) *cobra.Command {
	o := &answerOptions{app: a, approve: approve}
	name, short, effect := "deny", "Deny a held call as a person", "For an hour,\nthe same call is refused without asking again."
	if approve {
		name, short, effect = "approve", "Approve a held call as a person", "The client\ncan then make the same call once, unchanged, within the time of the setting\ngateway.approvalTime, by default 10 minutes."
	}
	return &cobra.Command{
		Use:   name + " CALL",
		Short: short,
		Long: short + `. The command shows the call with all its
arguments and asks for your passphrase and a note to the agent. ` + effect + `

The passphrase is that of guideway runs approve --set-passphrase; without one, no
call can be answered at a terminal.`,
		Example:           "  guideway calls " + name + " hc_06bmyb2ad4ft47c6abwmtxs",
		Args:              exactlyOneCall(name),
		ValidArgsFunction: completeCalls(a, holds.Waiting),
		RunE:              app.RunWithArg(runAnswer, o, &o.Call, a.Host.RequireTerminal),
	}
}

func runAnswer(ctx context.Context, o *answerOptions) error {
	cfg, err := o.app.Load()
	if err != nil {
		return err
	}
	person := app.NewApprover(o.app.Host, cfg)
	// Without a passphrase, this command can answer no call.
	if err := person.Passphrase.CheckUsable(); err != nil {
		return err
	}
	return withHolds(o.app, func(s *holds.Store, user string) error {
		c, err := s.Get(user, o.Call)
		if err != nil {
			return err
		}
		if c.Status != holds.Waiting {
			return guideway.Errorf(guideway.CodeConflict, "the held call %s is %s; only a call that waits can be answered", c.ID, c.Status).
				WithFix("guideway calls list --status waiting")
		}
		writeCall(o.app.Host, &c)
		fmt.Fprintln(person.Out)
		if err := person.CheckPassphrase(ctx); err != nil {
			return err
		}
		note, err := person.AskLine(ctx, "Note (optional): ")
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		answered, err := s.Answer(ctx, holds.AnswerRequest{ID: c.ID, User: user, Answer: holds.Answer{
			Approve: o.approve, By: user, Via: string(run.ViaTerminal), Note: strings.TrimSpace(note),
		}})
		if err != nil {
			return err
		}
		if o.approve {
			fmt.Fprintf(person.Out, "Approved. The client %s can make this call once until %s.\n", app.OneLine(answered.Client), answered.Expires.Local().Format(time.TimeOnly))
			return nil
		}
		fmt.Fprintf(person.Out, "Denied. The call is refused until %s.\n", answered.Expires.Local().Format(time.TimeOnly))
		return nil
	})
}
