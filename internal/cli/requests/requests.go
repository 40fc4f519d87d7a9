// Package requests implements the commands for the request log of the gateway.
package requests

import "github.com/guideway-dev/guideway/internal/cli/app"

import "github.com/guideway-dev/guideway/internal/cli/server"

import (
	"context"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/gateway/requestlog"
	"github.com/spf13/cobra"
)

func NewRequestsCmd(a *app.App) *cobra.Command {
	return app.NewGroupCmd(&cobra.Command{
		Use:   "requests",
		Short: "Inspect the requests to upstreams",
		Long: `Each request to an upstream MCP server is logged with its client, tool, duration and
result, and the actions of each hook, unless the setting requests.record is off. The
contents are logged only if the setting requests.bodies is on; likely secrets in them are
redacted.`,
		Example: `  guideway requests list --failed --since 1h
  guideway requests list --tool 'read_*' --slower-than 2s
  guideway requests show q_06bmyb2ad4ft47c6abwmtxs
  guideway requests tail
  guideway requests prune --older-than 7d`,
	},
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
