// Package session implements the commands for session documents.
package session

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/session"
	"github.com/spf13/cobra"
)

func NewSessionsCmd(a *app.App) *cobra.Command {
	return app.NewGroupCmd(&cobra.Command{Use: "sessions"},
		NewSessionsListCmd(a, runSessionsList), NewSessionsShowCmd(a, runSessionsShow), NewSessionsDeleteCmd(a, runSessionsDelete),
	)
}

// sessionDeps are the dependencies of a command on session documents.
type sessionDeps struct {
	sessions *session.Service
	person   guideway.Principal
	// here is the id of the project of the working directory.
	here string
}

func withSessions(ctx context.Context, a *app.App, do func(context.Context, *sessionDeps) error) error {
	return a.WithStore(ctx, func(ctx context.Context, o *app.Opened, person guideway.Principal) error {
		return do(ctx, &sessionDeps{
			sessions: session.New(session.Options{Store: o}),
			person:   person,
			here:     a.Host.Project().ID,
		})
	})
}

// sessionName parses ID, WORKFLOW/ID or PROJECT/WORKFLOW/ID, or the URI of a document.
func sessionName(word, here string) (session.Name, error) {
	if strings.Contains(word, "://") {
		return session.ParseURI(word)
	}
	n := session.Name{Here: here}
	switch parts := strings.Split(word, "/"); len(parts) {
	case 1:
		n.ID = parts[0]
	case 2:
		n.Workflow, n.ID = parts[0], parts[1]
	case 3:
		n.Project, n.Workflow, n.ID = parts[0], parts[1], parts[2]
	default:
		return n, guideway.Errorf(guideway.CodeInvalid, "%q is not the id of a session document", word).
			WithFix("use ID, WORKFLOW/ID or PROJECT/WORKFLOW/ID; guideway sessions list prints the ids")
	}
	return n, nil
}

// WholeName returns the unique name of a document.
func WholeName(r session.Ref) string { return r.Project + "/" + r.Workflow + "/" + r.ID }

// completeSessions completes document names.
func completeSessions(a *app.App) cobra.CompletionFunc {
	return app.CompleteNames(1, app.NamesInOrder, func(ctx context.Context) (names []string, err error) {
		err = withSessions(ctx, a, func(ctx context.Context, d *sessionDeps) error {
			list, err := d.sessions.Summaries(ctx, d.person, session.Filter{})
			ids := map[string]int{}
			for _, doc := range list {
				ids[doc.ID]++
			}
			for _, doc := range list {
				name := doc.ID
				if ids[doc.ID] > 1 {
					name = WholeName(doc.Ref)
				}
				names = append(names, name+"\t"+app.OneLine(doc.Workflow+" "+dashboardTitle(doc)))
			}
			return err
		})
		return names, err
	})
}

// SessionsListOptions is the command line of guideway sessions list.
type SessionsListOptions struct {
	app      *app.App
	Workflow string
	Project  string
	Here     bool
	Limit    int
	JSON     bool
}

func NewSessionsListCmd(a *app.App, run func(context.Context, *SessionsListOptions) error) *cobra.Command {
	o := &SessionsListOptions{app: a}
	cmd := &cobra.Command{
		Use:  "list",
		Args: app.NoArgs,
		RunE: app.RunWith(run, o),
	}
	f := cmd.Flags()
	f.StringVar(&o.Workflow, "workflow", "", "filter by the `id` of the workflow")
	f.StringVar(&o.Project, "project", "", "filter by the `id` of the project")
	f.BoolVar(&o.Here, "here", false, "show only documents of the project in the working directory; replaces --project")
	app.AddLimitFlag(cmd, &o.Limit, "maximum number of documents")
	f.BoolVar(&o.JSON, "json", false, "print JSON, including the documents")
	_ = cmd.RegisterFlagCompletionFunc("workflow", a.CompleteDefinitions())
	return cmd
}

// SessionsListAnswer is the answer of guideway sessions list --json.
type SessionsListAnswer struct {
	Sessions []session.Document `json:"sessions"`
}

func runSessionsList(ctx context.Context, o *SessionsListOptions) error {
	return withSessions(ctx, o.app, func(ctx context.Context, d *sessionDeps) error {
		options := session.Filter{Ref: session.Ref{Project: o.Project, Workflow: o.Workflow}, Limit: o.Limit}
		if o.Here {
			options.Ref.Project = d.here
		}
		if o.JSON {
			list, err := d.sessions.List(ctx, d.person, options)
			if err != nil {
				return err
			}
			return app.WriteJSON(o.app.Host.Out, SessionsListAnswer{Sessions: app.OrEmpty(list)})
		}
		list, err := d.sessions.Summaries(ctx, d.person, options)
		if err != nil {
			return err
		}
		return app.WriteList(o.app.Host, false, app.Listing[session.Summary]{
			Items: list, More: app.MoreText(len(list), o.Limit, "guideway sessions list"),
			Empty: "No session documents found. Agents create them with the tool workrail_create_session.",
			Table: app.NewTable(5, "ID", "WORKFLOW", "PROJECT", "STATUS", "CHANGED", "TITLE"),
			Row: func(doc session.Summary) []string {
				return []string{doc.ID, doc.Workflow, doc.Project, app.OrDash(dashboardText(doc, "status")), o.app.Host.FormatAge(doc.Updated), dashboardTitle(doc)}
			},
		})
	})
}

// dashboardText returns a text from the dashboard section of a document.
func dashboardText(doc session.Summary, field string) string {
	var dashboard map[string]any
	_ = json.Unmarshal(doc.Dashboard, &dashboard) // a dashboard that is not an object has no title
	text, _ := dashboard[field].(string)
	return app.OneLine(text)
}

func dashboardTitle(doc session.Summary) string {
	return cmp.Or(dashboardText(doc, "title"), app.OneLine(doc.ProjectPath))
}

// SessionsShowOptions is the command line of guideway sessions show.
type SessionsShowOptions struct {
	app  *app.App
	Name string
	Path string
	Log  bool
	JSON bool
}

func NewSessionsShowCmd(a *app.App, run func(context.Context, *SessionsShowOptions) error) *cobra.Command {
	o := &SessionsShowOptions{app: a}
	cmd := &cobra.Command{
		Use:               "show SESSION",
		Args:              app.ExactArgs(1, "the id of a session document", "guideway sessions show DASH-001"),
		ValidArgsFunction: completeSessions(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Name = args[0]
			if o.Log && o.Path != "" {
				return app.UsageError{Err: guideway.Errorf(guideway.CodeInvalid, "--log and --path cannot be combined").WithFix("omit --log, or omit --path")}
			}
			return run(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Path, "path", "", "print only the value at this `path`, dotted, such as dashboard.progress, or a JSONPath that starts with $")
	f.BoolVar(&o.Log, "log", false, "show the last 100 warnings about the content that agents wrote, instead of the document")
	f.BoolVar(&o.JSON, "json", false, "with --log, print the log as JSON; documents are always JSON")
	return cmd
}

// sessionsLogAnswer is the answer of guideway sessions show --log --json.
type sessionsLogAnswer struct {
	Log []session.LogEntry `json:"log"`
}

func runSessionsShow(ctx context.Context, o *SessionsShowOptions) error {
	return withSessions(ctx, o.app, func(ctx context.Context, d *sessionDeps) error {
		name, err := sessionName(o.Name, d.here)
		if err != nil {
			return app.UsageError{Err: err}
		}
		if o.Log {
			return o.showLog(ctx, d, name)
		}
		result, err := d.sessions.Read(ctx, d.person, name, o.Path)
		if err != nil {
			return err
		}
		if !result.Found {
			return guideway.Errorf(guideway.CodeNotFound, "there is no value at %s in the session document %s", o.Path, o.Name).
				WithFix("guideway sessions show %s", o.Name)
		}
		return app.WriteJSON(o.app.Host.Out, result.Data)
	})
}

func (o *SessionsShowOptions) showLog(ctx context.Context, d *sessionDeps, name session.Name) error {
	log, err := d.sessions.ValidationLog(ctx, d.person, name, 0)
	if err != nil {
		return err
	}
	host := o.app.Host
	if o.JSON {
		return app.WriteJSON(host.Out, sessionsLogAnswer{Log: app.OrEmpty(log)})
	}
	if len(log) == 0 {
		fmt.Fprintln(host.Err, "There are no warnings about the document.")
		return nil
	}
	for _, entry := range log {
		fmt.Fprintf(host.Out, "%s  revision %d  %s: %s\n", app.FormatTime(entry.At), entry.Revision, app.OneLine(entry.Pointer), app.OneLine(entry.Message))
	}
	return nil
}

// SessionsDeleteOptions is the command line of guideway sessions delete.
type SessionsDeleteOptions struct {
	app  *app.App
	Name string
	Undo bool
	// Purge erases the document, so that it cannot be restored.
	Purge bool
}

func NewSessionsDeleteCmd(a *app.App, run func(context.Context, *SessionsDeleteOptions) error) *cobra.Command {
	o := &SessionsDeleteOptions{app: a}
	cmd := &cobra.Command{
		Use:               "delete SESSION",
		Args:              app.ExactArgs(1, "the id of a session document", "guideway sessions delete DASH-001"),
		ValidArgsFunction: completeSessions(a),
		RunE:              app.RunWithArg(run, o, &o.Name),
	}
	cmd.Flags().BoolVar(&o.Undo, "undo", false, "restore a deleted document")
	cmd.Flags().BoolVar(&o.Purge, "purge", false, "erase the document instead of keeping it for --undo")
	cmd.MarkFlagsMutuallyExclusive("undo", "purge")
	return cmd
}

func runSessionsDelete(ctx context.Context, o *SessionsDeleteOptions) error {
	return withSessions(ctx, o.app, func(ctx context.Context, d *sessionDeps) error {
		name, err := sessionName(o.Name, d.here)
		if err != nil {
			return app.UsageError{Err: err}
		}
		if o.Purge {
			ref, err := d.sessions.Purge(ctx, d.person, name)
			if err == nil {
				fmt.Fprintf(o.app.Host.Out, "Erased: %s\n", WholeName(ref))
			}
			return err
		}
		if o.Undo {
			if name.Workflow == "" {
				return app.UsageError{Err: guideway.Errorf(guideway.CodeInvalid, "--undo requires the workflow of the deleted document, because the id %q alone does not identify the document", name.ID).
					WithFix("guideway sessions delete --undo WORKFLOW/%s", name.ID)}
			}
			if name.Project == "" {
				name.Project = d.here // a deleted document cannot be looked up to find its project
			}
			ref, err := d.sessions.Restore(ctx, d.person, name)
			if err != nil {
				return err
			}
			fmt.Fprintf(o.app.Host.Out, "Restored: %s\n", WholeName(ref))
			return nil
		}
		ref, err := d.sessions.Delete(ctx, d.person, name)
		if err != nil {
			return err
		}
		fmt.Fprintf(o.app.Host.Out, "Deleted: %s\nTo restore: guideway sessions delete --undo %s\n", WholeName(ref), WholeName(ref))
		return nil
	})
}
