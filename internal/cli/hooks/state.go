package hooks

import "github.com/guideway-dev/guideway/internal/cli/app"

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/guideway-dev/guideway"
	hookstate "github.com/guideway-dev/guideway/internal/hooks/state"
	"github.com/spf13/cobra"
)

// hooksStateOptions is the command line of guideway hooks state list and clear.
type hooksStateOptions struct {
	app     *app.App
	ID, For string
	JSON    bool
}

func newHooksStateCmd(a *app.App) *cobra.Command {
	list, remove := &hooksStateOptions{app: a}, &hooksStateOptions{app: a}
	listCmd := &cobra.Command{
		Use: "list [ID]", Short: "List the values that all hook graphs keep, or one",
		Example: "  guideway hooks state list quota --for my-agent",
		Args:    app.RangeArgs(0, 1, "at most the id of a hook graph", "guideway hooks state list quota"),
		RunE:    app.RunWithArg(runHooksStateList, list, &list.ID),
	}
	app.AddJSONFlag(listCmd, &list.JSON)
	clearCmd := &cobra.Command{
		Use: "clear ID", Short: "Delete the values that a hook graph keeps",
		Long: `Delete the values that a hook graph keeps: a quota or a rate limit counts from zero again,
and a call that was answered from a cache is sent again. If you have set a passphrase with
"guideway runs approve --set-passphrase", the command asks for it.`,
		Example: "  guideway hooks state clear quota --for my-agent",
		Args:    app.ExactArgs(1, "the id of a hook graph", "guideway hooks state clear quota"),
		RunE:    app.RunWithArg(runHooksStateClear, remove, &remove.ID),
	}
	app.AddChangeFlag(clearCmd, &remove.JSON)
	for cmd, o := range map[*cobra.Command]*hooksStateOptions{listCmd: list, clearCmd: remove} {
		cmd.ValidArgsFunction = completeHooks(a)
		cmd.Flags().StringVar(&o.For, "for", "", "select only the values of the user, client or upstream `NAME`")
	}
	return app.NewGroupCmd(&cobra.Command{
		Use: "state", Short: "List and clear the values that hook graphs keep",
		Example: "  guideway hooks state list\n  guideway hooks state clear quota --for my-agent",
	}, listCmd, clearCmd)
}

// hookValue is a value of a hook graph.
type hookValue struct {
	ref   hookstate.Ref
	Graph string `json:"graph"`
	Scope string `json:"scope"`
	// For are the user with the token and the client, or the upstream, to which the value
	// belongs.
	For     []string        `json:"for"`
	Key     string          `json:"key"`
	Value   json.RawMessage `json:"value"`
	Expires time.Time       `json:"expires,omitzero"`
}

// withValues opens the store and passes the selected values to do.
func (o *hooksStateOptions) withValues(ctx context.Context, do func(*app.Opened, []hookValue) error) error {
	return o.app.WithStore(ctx, func(ctx context.Context, s *app.Opened, _ guideway.Principal) error {
		items, err := s.HookStates(ctx, o.ID, o.app.Host.CurrentTime())
		if err != nil {
			return err
		}
		values := []hookValue{}
		for _, i := range items {
			if scope := i.ScopeParts(); o.For == "" || slices.Contains(scope[1:], o.For) {
				values = append(values, hookValue{i.Ref, i.Graph, scope[0], scope[1:], i.Key, i.Value, i.Expires})
			}
		}
		return do(s, values)
	})
}

func runHooksStateList(ctx context.Context, o *hooksStateOptions) error {
	return o.withValues(ctx, func(_ *app.Opened, values []hookValue) error {
		return app.WriteList(o.app.Host, o.JSON, app.Listing[hookValue]{
			Items: values, Answer: values, Empty: "No values of hook graphs found.",
			Table: app.NewTable(3, "GRAPH", "SCOPE", "FOR", "KEY", "VALUE", "EXPIRES"),
			Row: func(v hookValue) []string {
				value, expires := string(v.Value), ""
				if len(value) > 40 { // such as a stored result
					value = fmt.Sprintf("%d bytes", len(value))
				}
				if !v.Expires.IsZero() {
					expires = v.Expires.Local().Format("2006-01-02 15:04")
				}
				return []string{v.Graph, v.Scope, app.OneLine(strings.Join(v.For, " ")), app.OneLine(v.Key), app.OneLine(value), expires}
			},
		})
	})
}

func runHooksStateClear(ctx context.Context, o *hooksStateOptions) error {
	cfg, err := o.app.Load()
	if err != nil {
		return err
	}
	if err := (&HookDeps{app: o.app}).checkPassphrase(ctx, app.NewApprover(o.app.Host, cfg)); err != nil {
		return err
	}
	return o.withValues(ctx, func(s *app.Opened, values []hookValue) error {
		remove := func(hookstate.Entry) (hookstate.Entry, error) { return hookstate.Entry{}, nil }
		for _, v := range values {
			if err := s.ChangeHookState(ctx, v.ref, o.app.Host.CurrentTime(), remove); err != nil {
				return err
			}
		}
		return o.app.Host.WriteResult(o.JSON, app.ChangeResult{Action: "cleared", Changed: len(values) > 0, Kind: app.KindHookGraph, Name: o.ID},
			fmt.Sprintf("Cleared %s of %s.", app.Plural(len(values), "value", "values"), o.ID))
	})
}
