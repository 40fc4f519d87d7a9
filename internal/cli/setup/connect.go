package setup

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/cli/server"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/evidence"
	"github.com/guideway-dev/guideway/internal/evidence/execute"
	"github.com/guideway-dev/guideway/internal/evidence/execute/worktree"
	"github.com/guideway-dev/guideway/internal/gateway/upstream"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	"github.com/guideway-dev/guideway/internal/platform/ssrf"
	"github.com/spf13/cobra"
)

// connectOptions is the command line of guideway connect.
type connectOptions struct {
	app        *app.App
	URL, Token string
}

func NewConnectCmd(a *app.App, run func(context.Context, *connectOptions) error) *cobra.Command {
	o := &connectOptions{app: a}
	cmd := &cobra.Command{
		Use:  "connect",
		Args: app.NoArgs,
		RunE: app.RunWith(run, o),
	}
	cmd.Flags().StringVar(&o.URL, "url", "", "`URL` of the server, such as http://127.0.0.1:3000/mcp (default: the local server)")
	cmd.Flags().StringVar(&o.Token, "token", "", "bearer `token` for the server (default: $GUIDEWAY_TOKEN, or else the token of the local server)")
	return cmd
}

func RunConnect(ctx context.Context, o *connectOptions) error {
	cfg, err := o.app.Load()
	if err != nil {
		return err
	}
	opts, err := o.findServer(ctx, cfg)
	if err != nil {
		return err
	}
	host := o.app.Host
	if here, err := os.Hostname(); err == nil {
		checks := &connectChecks{dir: host.Dir, checker: o.app.NewChecker(cfg, nil)}
		opts.Host, opts.AnswerChecks = here, checks.answerRequest
	}
	b := upstream.NewBridge(opts, host.Out)
	if err := b.Reach(ctx); err != nil {
		if !host.InTerminal {
			b.Refuse(host.In, err)
		}
		return err
	}
	if host.InTerminal {
		fmt.Fprintf(host.Err, "Connected to %s. This command is for MCP clients, which write to standard input; to stop it, press Ctrl-D.\n", opts.URL)
	}
	return b.Run(ctx, host.In)
}

// findServer returns the options of the bridge. A token that the user passed together with
// a URL is sent without a proof. Any other token is sent only after the server has proven
// that it is the server of this data directory, because any program may listen on its port.
func (o *connectOptions) findServer(ctx context.Context, cfg *config.Config) (upstream.BridgeOptions, error) {
	opts := upstream.BridgeOptions{
		URL: o.URL, Token: cmp.Or(o.Token, o.app.Host.Getenv("GUIDEWAY_TOKEN")), ParamHeaders: upstream.ParamHeaders,
		Start: "start the server in another terminal: guideway serve; or let the client start its own: guideway mcp",
	}
	if opts.URL == "" {
		at, ok := server.FindLiveServer(ctx, cfg)
		if !ok {
			at = cfg.Listen
		}
		opts.URL = "http://" + at + "/mcp"
	}
	to, err := url.Parse(opts.URL)
	if err != nil || to.Host == "" || to.Scheme != "http" && to.Scheme != "https" || to.User != nil {
		return opts, app.UsageError{Err: guideway.Errorf(guideway.CodeInvalid, "--url must be an http or https URL with a host and without a user name").WithFix("--url http://127.0.0.1:3000/mcp")}
	}
	if o.URL != "" && !ssrf.IsLoopback(to.Hostname()) {
		opts.Start = "check the URL, and that the server and the network are up"
	}
	if o.URL != "" && (opts.Token != "" || to.Scheme != "http" || !ssrf.IsLoopback(to.Hostname())) {
		return opts, nil
	}
	if _, err := os.Stat(cfg.TokenFile); err != nil { // a running server has created the token file
		if opts.Token != "" {
			return opts, guideway.Errorf(guideway.CodeUnavailable, "the server for the token is unknown: there is no readable token file %s of a local server", cfg.TokenFile).
				WithFix("name the server for the token: guideway connect --url %s; or %s", opts.URL, opts.Start)
		}
		return opts, nil
	}
	known, _, err := auth.LoadOrCreateToken(cfg.TokenFile)
	opts.Token, opts.Dial = cmp.Or(opts.Token, known), auth.DialProven(known)
	return opts, err
}

// connectChecks executes the checks of runs of a remote server in the workspace of this
// process, with the approvals of the local user.
type connectChecks struct {
	dir     string
	checker *execute.Checker
}

// answerRequest returns the answer to a sealed request of the server.
func (c *connectChecks) answerRequest(ctx context.Context, sealed string, progress func(string)) json.RawMessage {
	answer := evidence.ConnectAnswer{Sealed: sealed}
	if err := c.execute(ctx, &answer, progress); err != nil {
		answer = evidence.ConnectAnswer{Sealed: sealed, Refusal: err.Error(), Fix: guideway.ErrorFix(err)}
	}
	text, _ := json.Marshal(answer) // it has only strings and numbers
	return text
}

// execute adds the workspace or the results of the checks to the answer. Only the workspace of
// the working directory is used: the server must not read other directories.
func (c *connectChecks) execute(ctx context.Context, answer *evidence.ConnectAnswer, progress func(string)) error {
	payload, _, _ := strings.Cut(answer.Sealed, ".")
	var asked evidence.ConnectRequest
	text, err := base64.RawURLEncoding.DecodeString(payload)
	if err != nil || json.Unmarshal(text, &asked) != nil {
		return guideway.Errorf(guideway.CodeInvalid, "guideway connect cannot read the request of the server").WithFix("use the same version of guideway on both computers")
	}
	root, err := worktree.Root(c.dir)
	if err != nil {
		return err
	}
	if path := asked.ProjectPath; path != "" && filepath.Clean(path) != root {
		if other, err := worktree.Root(path); err != nil || other != root {
			return otherWorkspace(path, root)
		}
	}
	if len(asked.Checks) == 0 {
		answer.Workspace, err = c.checker.Workspace(ctx, root)
		return err
	}
	for _, r := range asked.Checks {
		if r.Start == nil || r.Template == nil || r.Rule == nil || r.Start.Root != root {
			return otherWorkspace(cmp.Or(r.Start, &evidence.Workspace{}).Root, root)
		}
		r.Progress = progress
		result, err := c.checker.Check(ctx, r)
		if err != nil {
			return err
		}
		answer.Results = append(answer.Results, result)
	}
	return nil
}

// otherWorkspace returns the error for a run of another workspace than the one of this process.
func otherWorkspace(path, root string) error {
	return guideway.Errorf(guideway.CodeForbidden, "guideway connect was started in %s, and executes no checks in %s", root, path).
		WithFix("start guideway connect in %s, or start a new run with the project %s", path, root)
}
