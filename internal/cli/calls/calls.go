// Package calls implements the commands for held calls.
package calls

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/gateway/holds"
	"github.com/guideway-dev/guideway/internal/gateway/requestlog"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/spf13/cobra"
)

// NewCallsCmd returns the command guideway calls.
func NewCallsCmd(a *app.App) *cobra.Command {
	return app.NewGroupCmd(&cobra.Command{Use: "calls"}, newListCmd(a), newShowCmd(a), newAnswerCmd(a, true), newAnswerCmd(a, false))
}

// exactlyOneCall checks the single argument of a command.
func exactlyOneCall(command string) cobra.PositionalArgs {
	return app.ExactArgs(1, "the id of a held call", "guideway calls "+command+" hc_06bmyb2ad4ft47c6abwmtxs; guideway calls list prints the ids")
}

// withHolds opens the held calls of the user.
func withHolds(a *app.App, do func(s *holds.Store, user string) error) error {
	cfg, person, err := a.LoadUser()
	if err != nil {
		return err
	}
	return do(a.OpenHolds(cfg), person.User)
}

// completeCalls completes the ids of calls with one of the statuses.
func completeCalls(a *app.App, statuses ...holds.Status) cobra.CompletionFunc {
	return app.CompleteNames(1, app.NamesInOrder, func(context.Context) (names []string, err error) {
		err = withHolds(a, func(s *holds.Store, user string) error {
			list, err := s.List(user)
			for _, c := range list {
				if len(statuses) == 0 || slices.Contains(statuses, c.Status) {
					names = append(names, c.ID+"\t"+app.OneLine(c.Name))
				}
			}
			return err
		})
		return names, err
	})
}

// listOptions is the command line of guideway calls list.
type listOptions struct {
	app      *app.App
	Statuses []string
	Limit    int
	JSON     bool
}

func newListCmd(a *app.App) *cobra.Command {
	o := &listOptions{app: a}
	cmd := &cobra.Command{
		Use:  "list",
		Args: app.NoArgs,
		RunE: app.RunWith(runList, o, o.checkOptions),
	}
	names := app.ToStrings(holds.Statuses()...)
	cmd.Flags().StringSliceVar(&o.Statuses, "status", nil, "filter by `statuses`: "+strings.Join(names, ", "))
	app.AddFixedCompletion(cmd, "status", names)
	app.AddLimitFlag(cmd, &o.Limit, "maximum number of calls")
	app.AddJSONFlag(cmd, &o.JSON)
	return cmd
}

func (o *listOptions) checkOptions() error {
	for _, status := range o.Statuses {
		if err := app.CheckChoice("status", status, app.ToStrings(holds.Statuses()...)); err != nil {
			return err
		}
	}
	return nil
}

// listAnswer is the answer of guideway calls list --json.
type listAnswer struct {
	Calls []holds.Call `json:"calls"`
}

func runList(_ context.Context, o *listOptions) error {
	return withHolds(o.app, func(s *holds.Store, user string) error {
		list, err := s.List(user)
		if err != nil {
			return err
		}
		if len(o.Statuses) > 0 {
			list = slices.DeleteFunc(list, func(c holds.Call) bool { return !slices.Contains(o.Statuses, string(c.Status)) })
		}
		list = list[:min(o.Limit, len(list))]
		for i := range list {
			list[i].Preview, list[i].Arguments = requestlog.PreviewArguments(list[i].Arguments), nil
		}
		return app.WriteList(o.app.Host, o.JSON, app.Listing[holds.Call]{
			Items: list, Answer: listAnswer{Calls: app.OrEmpty(list)}, More: app.MoreText(len(list), o.Limit, "guideway calls list"),
			Empty: "No held calls found. Calls are held by the setting gateway.tools, the policy of a step or a hook graph.",
			Table: app.NewTable(5, "CALL", "STATUS", "CLIENT", "MADE", "TOOL", "ARGUMENTS"),
			Row: func(c holds.Call) []string {
				return []string{c.ID, string(c.Status), app.OrDash(app.OneLine(c.Client)), o.app.Host.FormatAge(c.Created), app.OneLine(c.Name), app.OneLine(c.Preview)}
			},
		})
	})
}

func newShowCmd(a *app.App) *cobra.Command {
	cmd := app.NewNameCmd(a, runShow, &cobra.Command{
		Use:  "show CALL",
		Args: exactlyOneCall("show"),
	})
	cmd.ValidArgsFunction = completeCalls(a)
	return cmd
}

func runShow(_ context.Context, o *app.NameOptions) error {
	return withHolds(o.App, func(s *holds.Store, user string) error {
		c, err := s.Get(user, o.Name)
		if err != nil {
			return err
		}
		return o.App.Host.WriteJSONOr(o.JSON, c, func() { writeCall(o.App.Host, &c) })
	})
}

// writeCall prints a call as a person reviews it.
func writeCall(host *app.Host, c *holds.Call) {
	line := host.WriteFields(8)
	line("Call", c.ID)
	line("Tool", app.OneLine(c.Name))
	line("Server", app.OneLine(c.Upstream))
	line("Client", app.OneLine(c.Client))
	line("Reason", app.OneLine(c.Reason))
	line("Status", string(c.Status))
	line("Made", host.FormatAge(c.Created))
	switch c.Status {
	case holds.Waiting, holds.Approved:
		line("Expires", c.Expires.Local().Format(time.DateTime))
	case holds.Denied, holds.Used, holds.Expired:
	}
	if c.Answer != nil {
		line("Answer", app.OneLine(fmt.Sprintf("by %s, %s, %s", c.Answer.By, c.Answer.Via, host.FormatAge(c.Answer.At))))
		line("Note", app.OneLine(c.Answer.Note))
	}
	switch text := c.ShownArguments(); {
	case text != "":
		fmt.Fprintf(host.Out, "\n%s\n%s\n", host.OutStyles().Bold("Arguments"), app.EscapeText(text))
	case c.Status == holds.Waiting || c.Status == holds.Approved:
		fmt.Fprintln(host.Out, "\nThe call has no arguments.")
	}
}

// answerOptions is the command line of guideway calls approve and deny.
type answerOptions struct {
	app     *app.App
	Call    string
	approve bool
}

// newAnswerCmd returns the command approve or deny.
func newAnswerCmd(a *app.App, approve bool) *cobra.Command {
	o := &answerOptions{app: a, approve: approve}
	name := "deny"
	if approve {
		name = "approve"
	}
	return &cobra.Command{
		Use:               name + " CALL",
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
