package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/session"
	"github.com/spf13/cobra"
)

func newSessionsCmd(a *app) *cobra.Command {
	return newGroupCmd(&cobra.Command{
		Use:   "sessions",
		Short: "Look at the session documents that agents keep",
		Long: `A session document is JSON in which an agent writes down how it gets on, for you to
look at. It is no run: nothing in it is checked or enforced.

SESSION is its id, with the workflow or the project and the workflow before it where
the id alone is not unique: ID, WORKFLOW/ID or PROJECT/WORKFLOW/ID.`,
		Example: `  guideway sessions list
  guideway sessions show DASH-001
  guideway sessions show bug-investigation/DASH-001 --path dashboard.progress
  guideway sessions delete DASH-001`,
	},
		newSessionsListCmd(a, runSessionsList), newSessionsShowCmd(a, runSessionsShow), newSessionsDeleteCmd(a, runSessionsDelete),
	)
}

// sessionDesk is what a command on session documents works with.
type sessionDesk struct {
	sessions *session.Service
	person   guideway.Principal
	// here is the id of the project of the working directory.
	here string
}

func (a *app) withSessions(ctx context.Context, do func(context.Context, *sessionDesk) error) error {
	return a.withStore(ctx, func(ctx context.Context, o *opened, person guideway.Principal) error {
		return do(ctx, &sessionDesk{
			sessions: session.New(session.Options{Store: o}),
			person:   person,
			here:     a.host.project().ID,
		})
	})
}

// sessionName reads ID, WORKFLOW/ID or PROJECT/WORKFLOW/ID, or the URI that an
// agent was given.
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
		return n, guideway.Errorf(guideway.CodeInvalid, "%q is not the name of a session", word).
			WithFix("write ID, WORKFLOW/ID or PROJECT/WORKFLOW/ID; guideway sessions list shows them")
	}
	return n, nil
}

// wholeName names a document so that nothing else is meant.
func wholeName(r session.Ref) string { return r.Project + "/" + r.Workflow + "/" + r.ID }

// completeSessions completes names of documents.
func (a *app) completeSessions(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	_ = a.withSessions(cmd.Context(), func(ctx context.Context, d *sessionDesk) error {
		list, err := d.sessions.Summaries(ctx, d.person, session.ListOptions{})
		ids := map[string]int{}
		for _, doc := range list {
			ids[doc.ID]++
		}
		for _, doc := range list {
			name := doc.ID
			if ids[doc.ID] > 1 {
				name = wholeName(doc.Ref)
			}
			names = append(names, name+"\t"+oneLine(doc.Workflow+" "+dashboardTitle(doc)))
		}
		return err // a shell that completes shows no errors
	})
	return names, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// sessionsListOptions is the command line of guideway sessions list.
type sessionsListOptions struct {
	app      *app
	Workflow string
	Project  string
	Here     bool
	Limit    int
	JSON     bool
}

func newSessionsListCmd(a *app, run func(context.Context, *sessionsListOptions) error) *cobra.Command {
	o := &sessionsListOptions{app: a}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List session documents, the last changed first",
		Example: `  guideway sessions list
  guideway sessions list --here --workflow bug-investigation --json`,
		Args: noArgs,
		RunE: runWith(run, o),
	}
	f := cmd.Flags()
	f.StringVar(&o.Workflow, "workflow", "", "only those of the workflow with this `id`")
	f.StringVar(&o.Project, "project", "", "only those of the project with this `id`")
	f.BoolVar(&o.Here, "here", false, "only those of the project in the working directory")
	addLimitFlag(cmd, &o.Limit, "at most so many")
	f.BoolVar(&o.JSON, "json", false, "answer in JSON, with the documents")
	_ = cmd.RegisterFlagCompletionFunc("workflow", a.completeDefinitions)
	return cmd
}

// sessionsListAnswer is the answer of guideway sessions list --json.
type sessionsListAnswer struct {
	Sessions []session.Document `json:"sessions"`
}

func runSessionsList(ctx context.Context, o *sessionsListOptions) error {
	return o.app.withSessions(ctx, func(ctx context.Context, d *sessionDesk) error {
		options := session.ListOptions{Project: o.Project, Workflow: o.Workflow, Limit: o.Limit}
		if o.Here {
			options.Project = d.here
		}
		if o.JSON {
			list, err := d.sessions.List(ctx, d.person, options)
			if err != nil {
				return err
			}
			return writeJSON(o.app.host.Out, sessionsListAnswer{Sessions: orEmpty(list)})
		}
		list, err := d.sessions.Summaries(ctx, d.person, options)
		if err != nil {
			return err
		}
		return writeList(o.app.host, false, listing[session.Summary]{
			items: list, more: moreText(len(list), o.Limit, "guideway sessions list"),
			empty: "There are no such session documents. An agent makes one with the tool workrail_create_session.",
			table: newTable(5, "ID", "WORKFLOW", "PROJECT", "STATUS", "CHANGED", "TITLE"),
			row: func(doc session.Summary) []string {
				return []string{doc.ID, doc.Workflow, doc.Project, orDash(dashboardText(doc, "status")), o.app.host.ago(doc.Updated), dashboardTitle(doc)}
			},
		})
	})
}

// dashboardText reads a text of the part that agents write for people.
func dashboardText(doc session.Summary, field string) string {
	var dashboard map[string]any
	_ = json.Unmarshal(doc.Dashboard, &dashboard) // what is no object has no title
	text, _ := dashboard[field].(string)
	return oneLine(text)
}

func dashboardTitle(doc session.Summary) string {
	if title := dashboardText(doc, "title"); title != "" {
		return title
	}
	return oneLine(doc.ProjectPath)
}

// sessionsShowOptions is the command line of guideway sessions show.
type sessionsShowOptions struct {
	app  *app
	Name string
	Path string
	Log  bool
	JSON bool
}

func newSessionsShowCmd(a *app, run func(context.Context, *sessionsShowOptions) error) *cobra.Command {
	o := &sessionsShowOptions{app: a}
	cmd := &cobra.Command{
		Use:   "show SESSION",
		Short: "Print a session document, or a part of it",
		Example: `  guideway sessions show DASH-001
  guideway sessions show DASH-001 --path 'hypotheses[0]'
  guideway sessions show DASH-001 --path '$.hypotheses[?@.status=="active"].name'
  guideway sessions show DASH-001 --log`,
		Args:              exactly(1, "one session, by its id", "guideway sessions show DASH-001"),
		ValidArgsFunction: a.completeSessions,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Name = args[0]
			if o.Log && o.Path != "" {
				return usageError{err: guideway.Errorf(guideway.CodeInvalid, "--log and --path do not go together").WithFix("give one of them")}
			}
			return run(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Path, "path", "", "only what this `path` leads to, as in dashboard.progress, or JSONPath after $")
	f.BoolVar(&o.Log, "log", false, "show what looked wrong when the document was written")
	f.BoolVar(&o.JSON, "json", false, "answer in JSON, which the document itself always is")
	return cmd
}

// sessionsLogAnswer is the answer of guideway sessions show --log --json.
type sessionsLogAnswer struct {
	Log []session.LogEntry `json:"log"`
}

func runSessionsShow(ctx context.Context, o *sessionsShowOptions) error {
	return o.app.withSessions(ctx, func(ctx context.Context, d *sessionDesk) error {
		name, err := sessionName(o.Name, d.here)
		if err != nil {
			return usageError{err: err}
		}
		if o.Log {
			return o.showLog(ctx, d, name)
		}
		result, err := d.sessions.Read(ctx, d.person, name, o.Path)
		if err != nil {
			return err
		}
		if !result.Found {
			return guideway.Errorf(guideway.CodeNotFound, "nothing stands at %s in %s", o.Path, o.Name).
				WithFix("guideway sessions show %s", o.Name)
		}
		return writeJSON(o.app.host.Out, result.Data)
	})
}

func (o *sessionsShowOptions) showLog(ctx context.Context, d *sessionDesk, name session.Name) error {
	log, err := d.sessions.ValidationLog(ctx, d.person, name, 0)
	if err != nil {
		return err
	}
	host := o.app.host
	if o.JSON {
		return writeJSON(host.Out, sessionsLogAnswer{Log: orEmpty(log)})
	}
	if len(log) == 0 {
		fmt.Fprintln(host.Err, "Nothing looked wrong.")
		return nil
	}
	for _, entry := range log {
		fmt.Fprintf(host.Out, "%s  revision %d  %s: %s\n", whenWords(entry.At), entry.Revision, oneLine(entry.Pointer), oneLine(entry.Message))
	}
	return nil
}

// sessionsDeleteOptions is the command line of guideway sessions delete.
type sessionsDeleteOptions struct {
	app  *app
	Name string
	Undo bool
}

func newSessionsDeleteCmd(a *app, run func(context.Context, *sessionsDeleteOptions) error) *cobra.Command {
	o := &sessionsDeleteOptions{app: a}
	cmd := &cobra.Command{
		Use:   "delete SESSION",
		Short: "Delete a session document, or bring it back",
		Long: `Take a session document out of all lists. --undo brings it back, by its whole name,
until an agent creates another one with that name.`,
		Example: `  guideway sessions delete DASH-001
  guideway sessions delete --undo 1a2b3c4d5e6f/bug-investigation/DASH-001`,
		Args:              exactly(1, "one session, by its id", "guideway sessions delete DASH-001"),
		ValidArgsFunction: a.completeSessions,
		RunE:              runWithArg(run, o, &o.Name),
	}
	cmd.Flags().BoolVar(&o.Undo, "undo", false, "bring a deleted document back")
	return cmd
}

func runSessionsDelete(ctx context.Context, o *sessionsDeleteOptions) error {
	return o.app.withSessions(ctx, func(ctx context.Context, d *sessionDesk) error {
		name, err := sessionName(o.Name, d.here)
		if err != nil {
			return usageError{err: err}
		}
		if o.Undo {
			if name.Project == "" {
				name.Project = d.here // a deleted document stands in no list to look it up
			}
			ref, err := d.sessions.Restore(ctx, d.person, name)
			if err != nil {
				return err
			}
			fmt.Fprintf(o.app.host.Out, "Back again: %s\n", wholeName(ref))
			return nil
		}
		ref, err := d.sessions.Delete(ctx, d.person, name)
		if err != nil {
			return err
		}
		fmt.Fprintf(o.app.host.Out, "Deleted: %s\nBring it back: guideway sessions delete --undo %s\n", wholeName(ref), wholeName(ref))
		return nil
	})
}
