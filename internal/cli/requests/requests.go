// Package requests implements the commands for the request log of the gateway.
package requests

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/cli/server"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/gateway/requestlog"
	"github.com/spf13/cobra"
)

func NewRequestsCmd(a *app.App) *cobra.Command {
	return app.NewGroupCmd(&cobra.Command{Use: "requests"},
		newRequestsListCmd(a, runRequestsList), newRequestsShowCmd(a),
		newRequestsTailCmd(a, runRequestsTail), newRequestsStatsCmd(a, runRequestsStats), newRequestsPruneCmd(a, runRequestsPrune),
	)
}

// requestFilter holds the flags that filter entries.
type requestFilter struct {
	Client, Upstream, Tool, Method string
	Statuses                       []string
	Failed                         bool
	Since, Until, SlowerThan       string
	Hook                           string
	Words                          []string
}

func requestStatuses() []string { return app.ToStrings(requestlog.Statuses()...) }

func (f *requestFilter) addFlags(a *app.App, cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.Client, "client", "", "filter by the `name` of the client, as it announces itself")
	flags.StringVar(&f.Upstream, "upstream", "", "filter by the `name` of the upstream")
	flags.StringVar(&f.Tool, "tool", "", "filter by the `name` of the tool; a trailing * matches any suffix")
	flags.StringVar(&f.Method, "method", "", "filter by `method`, such as prompts/get")
	flags.StringSliceVar(&f.Statuses, "status", nil, "filter by `statuses`: "+strings.Join(requestStatuses(), ", "))
	flags.BoolVar(&f.Failed, "failed", false, "show only failed requests")
	flags.StringVar(&f.Since, "since", "", "filter by `time`: at or after a date, a time, or an age such as 1h")
	flags.StringVar(&f.Until, "until", "", "filter by `time`: before a date, a time, or an age such as 1h")
	flags.StringVar(&f.SlowerThan, "slower-than", "", "filter by minimum `duration`, such as 500ms")
	flags.StringVar(&f.Hook, "hook", "", "filter by the `id` of a hook graph that wrapped the request")
	app.AddFixedCompletion(cmd, "status", requestStatuses())
	app.AddFixedCompletion(cmd, "method", []string{"tools/call", "tools/list", "prompts/get", "resources/read", "completion/complete"})
	_ = cmd.RegisterFlagCompletionFunc("upstream", server.CompleteUpstreamFlag(a))
}

// toLogFilter returns the filter of the flags.
func (f *requestFilter) toLogFilter(host *app.Host, user string) (requestlog.Filter, error) {
	out := requestlog.Filter{
		User: user, Client: f.Client, Upstream: f.Upstream, Tool: f.Tool, Method: f.Method, Graph: f.Hook, Words: f.Words,
	}
	var err error
	if out.Statuses, err = requestlog.ParseStatuses(f.Statuses, f.Failed); err != nil {
		return out, err
	}
	if out.Since, err = host.ParseTime(f.Since); err != nil {
		return out, err
	}
	if out.Until, err = host.ParseTime(f.Until); err != nil {
		return out, err
	}
	if f.SlowerThan != "" {
		if out.Slower, err = config.ParseDuration(f.SlowerThan); err != nil {
			return out, guideway.Errorf(guideway.CodeInvalid, "--slower-than %q is not a duration", f.SlowerThan).WithFix("--slower-than 500ms")
		}
	}
	return out, nil
}

// requestDeps are the dependencies of the commands on requests.
type requestDeps struct {
	cfg  *config.Config
	user string
	// log is nil if there is no log yet.
	log *requestlog.Log
}

// withRequests opens the log, if there is one.
func withRequests(ctx context.Context, a *app.App, do func(context.Context, *requestDeps) error) error {
	cfg, person, err := a.LoadUser()
	if err != nil {
		return err
	}
	d := &requestDeps{cfg: cfg, user: person.User}
	if requestlog.Exists(server.RequestLogPath(cfg)) {
		if d.log, err = requestlog.Open(ctx, server.RequestLogPath(cfg)); err != nil {
			return err
		}
		d.log.Texts = app.SealFiles(cfg)
		defer func() { _ = d.log.Close() }()
	}
	return do(ctx, d)
}

// emptyText returns the message for an empty list.
func (d *requestDeps) emptyText() string {
	if !d.cfg.Requests.Record {
		return "No requests found. New requests are not recorded, because the setting requests.record is off."
	}
	return "No requests found. Only requests to upstreams are recorded; to list the upstreams: guideway upstream list"
}

// statusStyled returns the status of a request with its color.
func statusStyled(s app.Styles, status requestlog.Status) string {
	text := strings.ReplaceAll(string(status), "_", " ")
	switch {
	case status == requestlog.StatusOK || status == requestlog.StatusAnswered:
		return s.Green(text)
	case status.Failed():
		return s.Red(text)
	default:
		return s.Yellow(text)
	}
}

// requestsListOptions is the command line of guideway requests list.
type requestsListOptions struct {
	app    *app.App
	Filter requestFilter
	Limit  int
	Cursor string
	JSON   bool
}

func newRequestsListCmd(a *app.App, run func(context.Context, *requestsListOptions) error) *cobra.Command {
	o := &requestsListOptions{app: a}
	cmd := &cobra.Command{
		Use:  "list [WORD...]",
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Filter.Words = args
			if o.Limit < 1 || o.Limit > 10_000 {
				return app.UsageError{Err: guideway.Errorf(guideway.CodeInvalid, "--limit %d is not between 1 and 10000", o.Limit).WithFix("--limit 50")}
			}
			return run(cmd.Context(), o)
		},
	}
	o.Filter.addFlags(a, cmd)
	cmd.Flags().IntVar(&o.Limit, "limit", 50, "maximum number of results (up to 10000)")
	cmd.Flags().StringVar(&o.Cursor, "cursor", "", "`cursor` of the next page, as the previous page printed it")
	app.AddJSONFlag(cmd, &o.JSON)
	return cmd
}

// RequestsListAnswer is the answer of guideway requests list --json.
type RequestsListAnswer struct {
	requestlog.Page
	requestlog.Summary `json:"record"`
}

func runRequestsList(ctx context.Context, o *requestsListOptions) error {
	return withRequests(ctx, o.app, func(ctx context.Context, d *requestDeps) error {
		f, err := o.Filter.toLogFilter(o.app.Host, d.user)
		if err != nil {
			return app.UsageError{Err: err}
		}
		if f.Before, err = requestlog.ParseCursor(o.Cursor); err != nil {
			return app.UsageError{Err: err}
		}
		answer := RequestsListAnswer{Page: requestlog.Page{Entries: []requestlog.Entry{}}}
		if d.log != nil {
			f.Limit = o.Limit + 1
			list, err := d.log.List(ctx, f)
			if err != nil {
				return err
			}
			answer.Page = requestlog.PageOf(list, o.Limit)
			if answer.Summary, err = d.log.Summary(ctx); err != nil {
				return err
			}
		}
		return o.writeText(d, &answer)
	})
}

func (o *requestsListOptions) writeText(d *requestDeps, answer *RequestsListAnswer) error {
	host, more := o.app.Host, ""
	if answer.Next != "" {
		more = "For more results: guideway requests list --cursor " + answer.Next
	}
	err := app.WriteList(host, o.JSON, app.Listing[requestlog.Entry]{
		Items: answer.Entries, Answer: answer, Empty: d.emptyText(), More: more,
		Table: app.NewTable(4, "REQUEST", "WHEN", "STATUS", "CLIENT", "TOOL", "MS", "ANSWER", "HOOKS").AlignRight(5, 6),
		Row: func(e requestlog.Entry) []string {
			return []string{
				e.ID, host.FormatAge(e.At), statusStyled(host.OutStyles(), e.Status), app.OrDash(app.OneLine(e.Client)), toolText(&e),
				formatMilliseconds(e.MS), app.FormatBytes(e.BytesOut), strings.Join(e.Hooks, ","),
			}
		},
	})
	if n := answer.Dropped; n > 0 && !o.JSON {
		fmt.Fprintf(host.Err, "Not recorded: %s, because too many requests arrived at the same time or the log was not writable.\n", app.Plural(int(n), "more request", "more requests"))
	}
	return err
}

// toolText returns the tool, or the other target, of a request.
func toolText(e *requestlog.Entry) string {
	what := app.OneLine(e.Tool)
	if e.Upstream != "" {
		what = app.OneLine(e.Upstream) + " " + what
	}
	if e.Method != "tools/call" {
		what = e.Method + " " + what
	}
	return strings.TrimSpace(what)
}

// formatMilliseconds returns a number of milliseconds with a precision that fits its size.
func formatMilliseconds(ms float64) string {
	switch {
	case ms < 10:
		return fmt.Sprintf("%.2f", ms)
	case ms < 1000:
		return fmt.Sprintf("%.0f", ms)
	default:
		return fmt.Sprint(time.Duration(ms * float64(time.Millisecond)).Round(100 * time.Millisecond).Milliseconds())
	}
}

// requestsStatsOptions is the command line of guideway requests stats.
type requestsStatsOptions struct {
	app    *app.App
	Filter requestFilter
	JSON   bool
}

func newRequestsStatsCmd(a *app.App, run func(context.Context, *requestsStatsOptions) error) *cobra.Command {
	o := &requestsStatsOptions{app: a}
	cmd := &cobra.Command{
		Use:  "stats",
		Args: app.NoArgs,
		RunE: app.RunWith(run, o),
	}
	o.Filter.addFlags(a, cmd)
	app.AddJSONFlag(cmd, &o.JSON)
	return cmd
}

// requestsStatsAnswer is the answer of guideway requests stats --json.
type requestsStatsAnswer struct {
	Tools []requestlog.ToolStats `json:"tools"`
}

func runRequestsStats(ctx context.Context, o *requestsStatsOptions) error {
	return withRequests(ctx, o.app, func(ctx context.Context, d *requestDeps) error {
		f, err := o.Filter.toLogFilter(o.app.Host, d.user)
		if err != nil {
			return app.UsageError{Err: err}
		}
		answer := requestsStatsAnswer{Tools: []requestlog.ToolStats{}}
		if d.log != nil {
			if answer.Tools, err = d.log.Tools(ctx, f); err != nil {
				return err
			}
		}
		host := o.app.Host
		return app.WriteList(host, o.JSON, app.Listing[requestlog.ToolStats]{
			Items: answer.Tools, Answer: answer, Empty: d.emptyText(),
			Table: app.NewTable(0, "TOOL", "REQUESTS", "ERRORS", "P50 MS", "P99 MS", "ANSWERS").AlignRight(1, 2, 3, 4, 5),
			Row: func(s requestlog.ToolStats) []string {
				return []string{
					toolText(&requestlog.Entry{Method: s.Method, Upstream: s.Upstream, Tool: s.Tool}), fmt.Sprint(s.Count), fmt.Sprint(s.Errors),
					formatMilliseconds(s.P50), formatMilliseconds(s.P99), app.FormatBytes(s.BytesOut),
				}
			},
		})
	})
}
