package hooks

import "github.com/guideway-dev/guideway/internal/cli/app"

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/guideway-dev/guideway"
	hookadmin "github.com/guideway-dev/guideway/internal/hooks/admin"
	hookengine "github.com/guideway-dev/guideway/internal/hooks/engine"
	"github.com/guideway-dev/guideway/internal/hooks/sandbox"
	"github.com/spf13/cobra"
)

// hooksTestOptions is the command line of guideway hooks test.
type hooksTestOptions struct {
	app  *app.App
	Name string
	// Request and Response are files; - is standard input.
	Request, Response string
	Client, Server    string
	Variables         []string
	JSON              bool
}

func newHooksTestCmd(a *app.App, run func(context.Context, *hooksTestOptions) error) *cobra.Command {
	o := &hooksTestOptions{app: a}
	cmd := &cobra.Command{
		Use:               "test {ID|FILE} --request FILE",
		Args:              app.ExactArgs(1, "a hook graph, by id or file", "guideway hooks test block-by-argument --request call.json"),
		ValidArgsFunction: completeHooks(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Name = args[0]
			if o.Request == "" {
				return app.UsageError{Err: guideway.Errorf(guideway.CodeInvalid, "--request is required: a file, or - for standard input").
					WithFix("guideway hooks test %s --request call.json", o.Name)}
			}
			return run(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Request, "request", "", "`file` with the request, or - for standard input")
	f.StringVar(&o.Response, "response", "", "`file` with the response of the upstream, or - for standard input (default: an empty response)")
	f.StringVar(&o.Client, "client", "test", "`name` of the client, for metadata.clientId")
	f.StringVar(&o.Server, "server", "test", "`name` of the upstream, for metadata.serverName")
	f.StringArrayVar(&o.Variables, "set", nil, "set the initial value of a variable as `name=value`, a JSON value or plain text; can be repeated")
	app.AddJSONFlag(cmd, &o.JSON)
	return cmd
}

func runHooksTest(ctx context.Context, o *hooksTestOptions) error {
	_, e, err := loadHook(ctx, o.app, o.Name)
	if err != nil {
		return err
	}
	sample, err := o.readSample(ctx)
	if err != nil {
		return err
	}
	linked, err := hookadmin.WithVariables(e.Linked, sample.Variables)
	if err != nil {
		return app.UsageError{Err: err}
	}
	sample.Variables = nil
	var answer *hookadmin.Trial
	err = WithPool(ctx, func(pool *sandbox.Pool) error {
		answer, err = hookadmin.Try(ctx, linked, sample, pool, o.app.Host.CurrentTime)
		if ctx.Err() != nil {
			return app.InterruptedError(err)
		}
		return err
	})
	if err != nil {
		return err
	}
	return o.app.Host.WriteCheckResult(o.JSON, answer, answer.Outcome == hookengine.StatusError, func() { o.writeTrial(answer) })
}

// parseSet parses variable assignments. A value that is not JSON is a string.
func parseSet(set []string) (map[string]json.RawMessage, error) {
	pairs, err := app.ParsePairs(set, `--set name=value, such as --set limit=100 or --set 'names=["a", "b"]'`)
	values := map[string]json.RawMessage{}
	for name, value := range pairs {
		if !json.Valid([]byte(value)) {
			text, err := json.Marshal(value)
			if err != nil {
				return nil, guideway.Errorf(guideway.CodeInternal, "write %q: %w", value, err)
			}
			value = string(text)
		}
		values[name] = json.RawMessage(value)
	}
	return values, err
}

// readSample reads the files of the request and of the response.
func (o *hooksTestOptions) readSample(ctx context.Context) (s hookadmin.Sample, err error) {
	s.Client, s.Server = o.Client, o.Server
	if s.Variables, err = parseSet(o.Variables); err != nil {
		return s, app.UsageError{Err: err}
	}
	if s.Request, err = o.readObject(ctx, "request", o.Request, `{"name": "a_tool", "arguments": {...}}`); err != nil {
		return s, err
	}
	if o.Response != "" {
		s.Response, err = o.readObject(ctx, "response", o.Response, `{"content": [{"type": "text", "text": "..."}]}`)
	}
	return s, err
}

// readObject reads a file with a JSON object.
func (o *hooksTestOptions) readObject(ctx context.Context, what, name, form string) (json.RawMessage, error) {
	data, err := o.app.Host.ReadDefinition(ctx, name)
	if err != nil {
		return nil, err
	}
	var whole map[string]json.RawMessage
	if err := json.Unmarshal(data, &whole); err != nil {
		return nil, guideway.Errorf(guideway.CodeInvalid, "the %s in %s is not a JSON object: %w", what, app.DisplayName(name), err).WithFix("write %s", form)
	}
	return json.RawMessage(data), nil
}

func (o *hooksTestOptions) writeTrial(answer *hookadmin.Trial) {
	host := o.app.Host
	s := host.OutStyles()
	paint := map[hookengine.Status]func(string) string{hookengine.StatusError: s.Red, hookengine.StatusRefused: s.Yellow}[answer.Outcome]
	if paint == nil {
		paint = s.Green
	}
	fmt.Fprintf(host.Out, "%s\n", s.Bold(paint(string(answer.Outcome))))
	if answer.Error != nil {
		fmt.Fprintf(host.Out, "%s\n", app.OneLine(answer.Error.Message))
	}
	for _, n := range answer.Nodes {
		writeNodeTrace(host, s, n.NodeTrace)
	}
	fmt.Fprintf(host.Out, "%s %s\n", s.Cyan("request"), app.OneLine(string(answer.Request.Params)))
	if answer.Request.Hold != "" {
		fmt.Fprintf(host.Out, "%s %s\n", s.Cyan("held"), app.OneLine(answer.Request.Hold))
	}
	if len(answer.Response) > 0 {
		fmt.Fprintf(host.Out, "%s %s\n", s.Cyan("response"), app.OneLine(string(answer.Response)))
	}
	for _, params := range answer.Progress {
		fmt.Fprintf(host.Out, "%s %s\n", s.Cyan("progress"), app.OneLine(string(params)))
	}
	for _, record := range answer.Audit {
		fmt.Fprintf(host.Out, "%s %s\n", s.Cyan("audit"), app.OneLine(string(record)))
	}
}

// writeNodeTrace prints the actions of a node.
func writeNodeTrace(host *app.Host, s app.Styles, n hookengine.NodeTrace) {
	more := ""
	switch {
	case n.FireAndForget:
		more = ", fire-and-forget"
	case n.Skipped:
		more = ", skipped"
	case n.Branch != "":
		more = ", " + string(n.Branch)
	}
	fmt.Fprintf(host.Out, "  %s %s\n", app.OneLine(n.ID), s.Faint(fmt.Sprintf("(%s%s) %.1f ms", n.Kind, more, n.MS)))
	for _, line := range n.Console {
		fmt.Fprintf(host.Out, "    %s %s\n", s.Faint(line.Level), app.OneLine(line.Text))
	}
	for _, c := range n.Changes {
		fmt.Fprintf(host.Out, "    %s %s %s\n", s.Cyan(c.Op), app.OneLine(c.Pointer), app.OneLine(string(c.After)))
	}
	if n.Error != nil {
		place := ""
		if n.Error.Line > 0 {
			place = fmt.Sprintf(" (%s:%d:%d)", app.OneLine(n.Error.File), n.Error.Line, n.Error.Column)
		}
		fmt.Fprintf(host.Out, "    %s %s%s\n", s.Red(app.OneLine(n.Error.Code)), app.OneLine(n.Error.Message), place)
	}
}
