package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/gateway/requestlog"
	"github.com/spf13/cobra"
)

// requestsListOptions is the command line of guideway requests list.
type requestsListOptions struct {
	app    *app
	Filter requestFilter
	Limit  int
	Cursor string
	JSON   bool
}

func newRequestsListCmd(a *app, run func(context.Context, *requestsListOptions) error) *cobra.Command {
	o := &requestsListOptions{app: a}
	cmd := &cobra.Command{
		Use:   "list [WORD...]",
		Short: "List requests, the last first",
		Long: `List requests, the last first. Words are looked for in the names of tools, upstreams,
clients and hook graphs, and in errors; an entry has all of them.`,
		Example: `  guideway requests list
  guideway requests list --failed --since 1h
  guideway requests list timeout --upstream files
  guideway requests list --json`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Filter.Words = args
			if o.Limit < 1 || o.Limit > 10_000 {
				return usageError{err: guideway.Errorf(guideway.CodeInvalid, "the limit %d is not from 1 to 10000", o.Limit).WithFix("--limit 50")}
			}
			return run(cmd.Context(), o)
		},
	}
	o.Filter.add(a, cmd)
	cmd.Flags().IntVar(&o.Limit, "limit", 50, "at most so many")
	cmd.Flags().StringVar(&o.Cursor, "cursor", "", "go on behind this `place`, which the list before names")
	addJSONFlag(cmd, &o.JSON)
	return cmd
}

// requestsListAnswer is the answer of guideway requests list --json.
type requestsListAnswer struct {
	requestlog.Page
	requestlog.Summary `json:"record"`
}

func runRequestsList(ctx context.Context, o *requestsListOptions) error {
	return o.app.withRequests(ctx, func(ctx context.Context, d *requestDesk) error {
		f, err := o.Filter.record(o.app.host, d.user)
		if err != nil {
			return usageError{err: err}
		}
		if f.Before, err = requestlog.ParseCursor(o.Cursor); err != nil {
			return usageError{err: err}
		}
		answer := requestsListAnswer{Page: requestlog.Page{Entries: []requestlog.Entry{}}}
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
		return o.write(d, &answer)
	})
}

func (o *requestsListOptions) write(d *requestDesk, answer *requestsListAnswer) error {
	host, more := o.app.host, ""
	if answer.Next != "" {
		more = "There are more: guideway requests list --cursor " + answer.Next
	}
	err := writeList(host, o.JSON, listing[requestlog.Entry]{
		items: answer.Entries, answer: answer, empty: d.emptyText(), more: more,
		table: newTable(4, "REQUEST", "WHEN", "STATUS", "CLIENT", "TOOL", "MS", "ANSWER", "HOOKS").alignRight(5, 6),
		row: func(e requestlog.Entry) []string {
			return []string{
				e.ID, host.ago(e.At), host.outStyles().request(e.Status), orDash(oneLine(e.Client)), toolWords(&e),
				millisecondWords(e.MS), bytesWords(e.BytesOut), strings.Join(e.Hooks, ","),
			}
		},
	})
	if n := answer.Dropped; n > 0 && !o.JSON {
		fmt.Fprintf(host.Err, "%d more were not recorded: too many came at once, or the file could not be written.\n", n)
	}
	return err
}

// toolWords says what a request was for.
func toolWords(e *requestlog.Entry) string {
	what := oneLine(e.Tool)
	if e.Upstream != "" {
		what = oneLine(e.Upstream) + " " + what
	}
	if e.Method != "tools/call" {
		what = e.Method + " " + what
	}
	return strings.TrimSpace(what)
}

// millisecondWords writes a time so that its size shows.
func millisecondWords(ms float64) string {
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
	app    *app
	Filter requestFilter
	JSON   bool
}

func newRequestsStatsCmd(a *app, run func(context.Context, *requestsStatsOptions) error) *cobra.Command {
	o := &requestsStatsOptions{app: a}
	cmd := &cobra.Command{
		Use:     "stats",
		Short:   "Count requests, errors and times by tool",
		Example: "  guideway requests stats --since 1d\n  guideway requests stats --upstream files --json",
		Args:    noArgs,
		RunE:    runWith(run, o),
	}
	o.Filter.add(a, cmd)
	addJSONFlag(cmd, &o.JSON)
	return cmd
}

// requestsStatsAnswer is the answer of guideway requests stats --json.
type requestsStatsAnswer struct {
	Tools []requestlog.ToolStats `json:"tools"`
}

func runRequestsStats(ctx context.Context, o *requestsStatsOptions) error {
	return o.app.withRequests(ctx, func(ctx context.Context, d *requestDesk) error {
		f, err := o.Filter.record(o.app.host, d.user)
		if err != nil {
			return usageError{err: err}
		}
		answer := requestsStatsAnswer{Tools: []requestlog.ToolStats{}}
		if d.log != nil {
			if answer.Tools, err = d.log.Tools(ctx, f); err != nil {
				return err
			}
		}
		host := o.app.host
		return writeList(host, o.JSON, listing[requestlog.ToolStats]{
			items: answer.Tools, answer: answer, empty: d.emptyText(),
			table: newTable(0, "TOOL", "REQUESTS", "ERRORS", "P50 MS", "P99 MS", "ANSWERS").alignRight(1, 2, 3, 4, 5),
			row: func(s requestlog.ToolStats) []string {
				return []string{
					toolWords(&requestlog.Entry{Method: s.Method, Upstream: s.Upstream, Tool: s.Tool}), fmt.Sprint(s.Count), fmt.Sprint(s.Errors),
					millisecondWords(s.P50), millisecondWords(s.P99), bytesWords(s.BytesOut),
				}
			},
		})
	})
}
