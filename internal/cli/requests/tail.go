package requests

import "github.com/guideway-dev/guideway/internal/cli/app"

import "github.com/guideway-dev/guideway/internal/cli/server"

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/gateway/requestlog"
	"github.com/guideway-dev/guideway/internal/platform/jsontext"
	"github.com/guideway-dev/guideway/internal/platform/visible"
	"github.com/spf13/cobra"
)

// requestsTailOptions is the command line of guideway requests tail.
type requestsTailOptions struct {
	app    *app.App
	Filter requestFilter
	Lines  int
	JSON   bool
}

func newRequestsTailCmd(a *app.App, run func(context.Context, *requestsTailOptions) error) *cobra.Command {
	o := &requestsTailOptions{app: a}
	cmd := &cobra.Command{
		Use:   "tail [WORD...]",
		Short: "Follow requests until Ctrl-C",
		Long: `Print the latest requests, and then each new one, until Ctrl-C. With words, print those
that contain all of them, as "guideway requests list" does.`,
		Example: `  guideway requests tail
  guideway requests tail --failed
  guideway requests tail --json | jq .tool`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Filter.Words = args
			if o.Lines < 0 || o.Lines > 10_000 {
				return app.UsageError{Err: guideway.Errorf(guideway.CodeInvalid, "--lines %d is not between 0 and 10000", o.Lines).WithFix("--lines 10")}
			}
			return run(cmd.Context(), o)
		},
	}
	o.Filter.addFlags(a, cmd)
	cmd.Flags().IntVarP(&o.Lines, "lines", "n", 10, "number of earlier requests to print first (up to 10000)")
	cmd.Flags().BoolVar(&o.JSON, "json", false, "print each request as a line of JSON")
	return cmd
}

// tailInterval is the polling interval.
const tailInterval = 500 * time.Millisecond

// tailPage is the maximum number of entries that one poll prints; earlier ones are skipped.
const tailPage = 10_000

func runRequestsTail(ctx context.Context, o *requestsTailOptions) error {
	cfg, person, err := o.app.LoadUser()
	if err != nil {
		return err
	}
	f, err := o.Filter.toLogFilter(o.app.Host, person.User)
	if err != nil {
		return app.UsageError{Err: err}
	}
	log := server.NewRequestLog(cfg)
	defer log.Close()
	f.Limit = o.Lines
	begun := false
	tick := time.NewTicker(tailInterval)
	defer tick.Stop()
	for {
		reader, err := log.Read(ctx)
		if err == nil && reader != nil {
			err = o.showNew(ctx, reader, &f, begun)
			begun = true
		} else if reader == nil {
			f.Limit, begun = tailPage, true // from now on all entries are new
		}
		if ctx.Err() != nil {
			return nil // Ctrl-C is the normal end of the command
		}
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// showNew prints new entries.
func (o *requestsTailOptions) showNew(ctx context.Context, reader *requestlog.Log, f *requestlog.Filter, begun bool) error {
	latest, err := reader.Latest(ctx)
	if err != nil {
		return err
	}
	if begun && latest == f.After {
		return nil
	}
	if f.Limit > 0 {
		list, err := reader.List(ctx, *f)
		if err != nil {
			return err
		}
		slices.Reverse(list)
		for i := range list {
			if err := o.writeEntry(&list[i]); err != nil {
				return err
			}
			latest = max(latest, list[i].Num)
		}
	}
	f.After, f.Limit = latest, tailPage
	return nil
}

func (o *requestsTailOptions) writeEntry(e *requestlog.Entry) error {
	host := o.app.Host
	if o.JSON {
		text, err := jsontext.Marshal(e)
		if err == nil {
			_, err = host.Out.Write(append(visible.EscapeJSON(text), '\n'))
		}
		return err
	}
	text := fmt.Sprintf("%s  %s  %8s ms  %s", e.At.Local().Format("15:04:05.000"), statusStyled(host.OutStyles(), e.Status), formatMilliseconds(e.MS), toolText(e))
	if e.Error != "" {
		text += "  " + app.OneLine(e.Error)
	}
	_, err := fmt.Fprintln(host.Out, text)
	return err
}

// requestsPruneOptions is the command line of guideway requests prune.
type requestsPruneOptions struct {
	app       *app.App
	OlderThan time.Duration
	MaxSize   int64
	JSON      bool
}

func newRequestsPruneCmd(a *app.App, run func(context.Context, *requestsPruneOptions) error) *cobra.Command {
	o := &requestsPruneOptions{app: a}
	var older, most string
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Delete old requests from the log",
		Long: `Delete old requests from the log. Without --older-than and --max-size, apply the settings
requests.retention and requests.maxSize, as servers do every ten minutes.`,
		Example: "  guideway requests prune\n  guideway requests prune --older-than 7d\n  guideway requests prune --max-size 50MB",
		Args:    app.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if older != "" {
				if o.OlderThan, err = config.ParseDuration(older); err != nil || o.OlderThan <= 0 {
					return app.UsageError{Err: guideway.Errorf(guideway.CodeInvalid, "--older-than %q is not an age above zero", older).WithFix("--older-than 7d")}
				}
			}
			if most != "" {
				if o.MaxSize, err = config.ParseSize(most); err != nil || o.MaxSize <= 0 {
					return app.UsageError{Err: guideway.Errorf(guideway.CodeInvalid, "--max-size %q is not a size above zero", most).WithFix("--max-size 50MB")}
				}
			}
			return run(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVar(&older, "older-than", "", "delete requests older than this `age`, such as 7d")
	cmd.Flags().StringVar(&most, "max-size", "", "delete the oldest requests until the log has at most this `size`, such as 50MB")
	app.AddJSONFlag(cmd, &o.JSON)
	return cmd
}

// requestsPruneAnswer is the answer of guideway requests prune --json.
type requestsPruneAnswer struct {
	Pruned int64              `json:"pruned"`
	Record requestlog.Summary `json:"record"`
}

func runRequestsPrune(ctx context.Context, o *requestsPruneOptions) error {
	return withRequests(ctx, o.app, func(ctx context.Context, d *requestDeps) error {
		answer := requestsPruneAnswer{}
		age, most := o.OlderThan, o.MaxSize
		if age == 0 && most == 0 {
			age, most = d.cfg.Requests.Retention, d.cfg.Requests.MaxSize
		}
		if d.log != nil {
			before := time.Time{}
			if age > 0 {
				before = o.app.Host.CurrentTime().Add(-age)
			}
			var err error
			if answer.Pruned, err = d.log.Prune(ctx, before, most); err != nil {
				return err
			}
			if answer.Record, err = d.log.Summary(ctx); err != nil {
				return err
			}
		}
		return o.app.Host.WriteResult(o.JSON, answer, fmt.Sprintf("Deleted: %s; %s left, %s", app.Plural(int(answer.Pruned), "request", "requests"),
			app.Plural(int(answer.Record.Count), "is", "are"), app.FormatBytes(answer.Record.Bytes)))
	})
}
