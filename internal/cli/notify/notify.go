// Package notify implements the commands for the receivers of notices.
package notify

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/notice"
	"github.com/guideway-dev/guideway/internal/platform/lists"
	"github.com/guideway-dev/guideway/internal/platform/shortid"
)

// NewNotifyCmd returns the command notify.
func NewNotifyCmd(a *app.App) *cobra.Command {
	return app.NewGroupCmd(&cobra.Command{Use: "notify"}, newTestCmd(a), app.NewPlainCmd(a, runList, &cobra.Command{Use: "list"}))
}

// testOptions is the command line of guideway notify test.
type testOptions struct {
	app   *app.App
	Names []string
	JSON  bool
}

func newTestCmd(a *app.App) *cobra.Command {
	o := &testOptions{app: a}
	cmd := &cobra.Command{
		Use:  "test [RECEIVER...]",
		Args: cobra.ArbitraryArgs,
		RunE: app.RunWithArgs(runTest, o, &o.Names),
		ValidArgsFunction: app.CompleteNames(math.MaxInt, cobra.ShellCompDirectiveNoFileComp, func(context.Context) ([]string, error) {
			cfg, err := a.Load()
			if err != nil {
				return nil, err
			}
			return slices.Sorted(maps.Keys(cfg.Notices)), nil
		}),
	}
	app.AddJSONFlag(cmd, &o.JSON)
	return cmd
}

// delivery is the result of a test notice.
type delivery struct {
	Receiver string `json:"receiver"`
	Accepted bool   `json:"accepted"`
	Error    string `json:"error,omitempty"`
}

func runTest(ctx context.Context, o *testOptions) error {
	cfg, err := o.app.Load()
	if err != nil {
		return err
	}
	names := o.Names
	if len(names) == 0 {
		names = app.NoticeReceivers(cfg)
	}
	for _, name := range names {
		if _, ok := cfg.Notices[name]; !ok {
			return guideway.Errorf(guideway.CodeNotFound, "there is no receiver of notices %q", name).WithFix("%s", addReceiverFix(cfg))
		}
	}
	if len(names) == 0 {
		return guideway.Errorf(guideway.CodeNotFound, "no receiver of notices is enabled").WithFix("%s", addReceiverFix(cfg))
	}
	now := o.app.Host.CurrentTime().UTC()
	test := notice.Notice{
		ID: shortid.Timed("n_test_", now), Type: notice.TypeTest, At: now,
		Text: "This is a test notice of Guideway.", Command: "guideway notify list",
	}
	var results []delivery
	var failed error
	for _, name := range names {
		r, err := o.app.NoticeReceiver(cfg, name)
		if err == nil {
			err = r.Deliver(ctx, test)
		}
		result := delivery{Receiver: name, Accepted: err == nil}
		if err != nil {
			result.Error = err.Error()
			failed = errors.Join(failed, err)
		}
		results = append(results, result)
	}
	if err := o.app.Host.WriteJSONOr(o.JSON, results, func() {
		for _, r := range results {
			if r.Accepted {
				fmt.Fprintf(o.app.Host.Out, "%s accepted the notice\n", r.Receiver)
			}
		}
	}); err != nil {
		return err
	}
	return failed
}

// addReceiverFix returns the fix for a missing receiver.
func addReceiverFix(cfg *config.Config) string {
	if len(cfg.Notices) > 0 {
		return "name one of the receivers in guideway.json: " + strings.Join(slices.Sorted(maps.Keys(cfg.Notices)), ", ")
	}
	return `add one to guideway.json: "notices": {"desk": {"command": ["notify-send", "Guideway"]}}`
}

// receiverRow is a receiver in the answer of guideway notify list --json.
type receiverRow struct {
	Name      string    `json:"name"`
	Kind      string    `json:"kind"`
	Types     []string  `json:"types"`
	Disabled  bool      `json:"disabled,omitempty"`
	Pending   int       `json:"pending"`
	Delivered int64     `json:"delivered"`
	Dropped   int64     `json:"dropped,omitempty"`
	LastAt    time.Time `json:"lastAt,omitzero"`
	LastError string    `json:"lastError,omitempty"`
}

func runList(_ context.Context, o *app.PlainOptions) error {
	cfg, err := o.App.Load()
	if err != nil {
		return err
	}
	rows := lists.Map(slices.Sorted(maps.Keys(cfg.Notices)), func(name string) receiverRow { return describeReceiver(cfg, name) })
	return app.WriteList(o.App.Host, o.JSON, app.Listing[receiverRow]{
		Items: rows, Answer: rows, Empty: "There are no receivers of notices; " + addReceiverFix(cfg),
		Table: app.NewTable(5, "RECEIVER", "KIND", "DELIVERED", "PENDING", "LAST", "STATE").AlignRight(2, 3),
		Row: func(r receiverRow) []string {
			state, last := "ok", ""
			switch {
			case r.Disabled:
				state = "disabled"
			case r.LastError != "":
				state = "failed: " + app.OneLine(r.LastError)
			}
			if !r.LastAt.IsZero() {
				last = r.LastAt.Local().Format("2006-01-02 15:04")
			}
			return []string{r.Name, r.Kind, strconv.FormatInt(r.Delivered, 10), strconv.Itoa(r.Pending), last, state}
		},
	})
}

// describeReceiver returns the row of a receiver.
func describeReceiver(cfg *config.Config, name string) receiverRow {
	set := cfg.Notices[name]
	row := receiverRow{Name: name, Kind: "webhook", Types: set.Types, Disabled: set.Disabled}
	if set.URL == "" {
		row.Kind = "command"
	}
	if row.Types == nil {
		row.Types = config.DefaultNoticeTypes()
	}
	box, err := notice.ReadOutbox(app.NoticesDir(cfg), name, app.SealFiles(cfg))
	if err != nil {
		row.LastError = err.Error()
		return row
	}
	row.Pending, row.Delivered, row.Dropped, row.LastAt, row.LastError = len(box.Pending), box.Delivered, box.Dropped, box.LastAt, box.LastError
	return row
}
