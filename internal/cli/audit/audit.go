// Package audit implements the commands for the audit log.
package audit

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/guideway-dev/guideway/internal/audit"
	"github.com/guideway-dev/guideway/internal/cli/app"
)

// NewAuditCmd returns the command audit.
func NewAuditCmd(a *app.App) *cobra.Command {
	return app.NewGroupCmd(&cobra.Command{Use: "audit"},
		app.NewPlainCmd(a, runList, &cobra.Command{Use: "list"}),
		newExportCmd(a),
		app.NewPlainCmd(a, runVerify, &cobra.Command{Use: "verify"}),
	)
}

// listAnswer is the answer of guideway audit list --json.
type listAnswer struct {
	Entries []audit.Entry `json:"entries"`
}

// listed is the number of entries of a list.
const listed = 100

func runList(_ context.Context, o *app.PlainOptions) error {
	cfg, err := o.App.Load()
	if err != nil {
		return err
	}
	list := []audit.Entry{}
	err = o.App.NewAudit(cfg).Visit(0, func(_ []byte, e audit.Entry) error {
		list = append(list[max(0, len(list)-listed+1):], e)
		return nil
	})
	if err != nil {
		return err
	}
	host := o.App.Host
	return app.WriteList(host, o.JSON, app.Listing[audit.Entry]{
		Items: list, Answer: listAnswer{list}, Empty: "The audit log is empty.",
		Table: app.NewTable(4, "NO", "TIME", "KIND", "USER", "SUBJECT", "DETAIL"),
		Row: func(e audit.Entry) []string {
			return []string{fmt.Sprint(e.Seq), host.FormatAge(e.At), string(e.Kind), app.OneLine(e.User), app.OneLine(e.Subject), app.OneLine(e.Detail)}
		},
	})
}

func newExportCmd(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "export", Args: app.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			cfg, err := a.Load()
			if err != nil {
				return err
			}
			return a.NewAudit(cfg).Visit(0, func(line []byte, _ audit.Entry) error {
				_, err := fmt.Fprintf(a.Host.Out, "%s\n", line)
				return err
			})
		},
	}
}

// verifyAnswer is the answer of guideway audit verify --json.
type verifyAnswer struct {
	Entries int64 `json:"entries"`
}

func runVerify(ctx context.Context, o *app.PlainOptions) error {
	cfg, err := o.App.Load()
	if err != nil {
		return err
	}
	n, err := o.App.NewAudit(cfg).Verify(ctx)
	if err != nil {
		return err
	}
	return o.App.Host.WriteJSONOr(o.JSON, verifyAnswer{n}, func() {
		fmt.Fprintf(o.App.Host.Out, "ok: %s, every link holds\n", app.Plural(int(n), "entry", "entries"))
	})
}
