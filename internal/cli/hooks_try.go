package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/hookdesk"
	"github.com/guideway-dev/guideway/internal/hookgraph"
	"github.com/guideway-dev/guideway/internal/script"
	"github.com/spf13/cobra"
)

// hooksTestOptions is the command line of guideway hooks test.
type hooksTestOptions struct {
	app  *app
	Name string
	// Request and Response are files; - is the standard input.
	Request, Response string
	Client, Server    string
	Variables         []string
	JSON              bool
}

func newHooksTestCmd(a *app, run func(context.Context, *hooksTestOptions) error) *cobra.Command {
	o := &hooksTestOptions{app: a}
	cmd := &cobra.Command{
		Use:   "test {ID|FILE} --request FILE",
		Short: "Take a request through a hook graph without any server",
		Long: `Take a request through a hook graph, with its real scripts in the sandbox, and show how it
comes out and what each node did. No server is called: the response is that of
--response, or an empty one. Whether the graph is enabled does not matter.

The request is a JSON file, - for the standard input: {"method": ..., "params": ...}, or
the params alone: {"name": "read_file", "arguments": {...}}. The response is a result, or
{"error": {"code": ..., "message": ...}} for a call that fails.

The exit code is 1 if a hook or the call failed.`,
		Example: `  guideway hooks test block-by-argument --request call.json
  guideway hooks test ./redact.yaml --request call.json --response result.json --json
  echo '{"name": "search"}' | guideway hooks test default-argument --request -`,
		Args:              exactly(1, "one hook graph, by id or file", "guideway hooks test block-by-argument --request call.json"),
		ValidArgsFunction: a.completeHooks,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Name = args[0]
			if o.Request == "" {
				return usageError{err: guideway.Errorf(guideway.CodeInvalid, "which request? Name its file, or - for the standard input").
					WithFix("guideway hooks test %s --request call.json", o.Name)}
			}
			return run(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Request, "request", "", "`file` of the request")
	f.StringVar(&o.Response, "response", "", "`file` of what the server would answer")
	f.StringVar(&o.Client, "client", "test", "`name` of the client, in metadata.clientId")
	f.StringVar(&o.Server, "server", "test", "`name` of the server, in metadata.serverName")
	f.StringArrayVar(&o.Variables, "set", nil, "begin with another value of a variable: `name=json`")
	addJSONFlag(cmd, &o.JSON)
	return cmd
}

func runHooksTest(ctx context.Context, o *hooksTestOptions) error {
	_, e, err := o.app.hookThatLoads(ctx, o.Name)
	if err != nil {
		return err
	}
	sample, err := o.sample(ctx)
	if err != nil {
		return err
	}
	linked, err := hookdesk.WithVariables(e.Linked, sample.Variables)
	if err != nil {
		return usageError{err: err}
	}
	sample.Variables = nil
	var answer *hookdesk.Trial
	err = withPool(ctx, func(pool *script.Pool) error {
		answer, err = hookdesk.Try(ctx, linked, sample, pool, o.app.host.currentTime)
		if ctx.Err() != nil {
			return interrupted(err)
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := o.write(answer); err != nil {
		return err
	}
	if answer.Outcome == hookgraph.StatusError {
		return silentError{exitFailed}
	}
	return nil
}

// parseSet reads values of variables. What is no JSON is a text.
func parseSet(set []string) (map[string]json.RawMessage, error) {
	values := map[string]json.RawMessage{}
	for _, one := range set {
		name, value, ok := strings.Cut(one, "=")
		if !ok || name == "" {
			return nil, guideway.Errorf(guideway.CodeInvalid, "%q sets nothing", one).WithFix(`--set name=value, such as --set limit=100 or --set 'names=["a", "b"]'`)
		}
		if !json.Valid([]byte(value)) {
			text, err := json.Marshal(value)
			if err != nil {
				return nil, guideway.Errorf(guideway.CodeInternal, "write %q: %w", value, err)
			}
			value = string(text)
		}
		values[name] = json.RawMessage(value)
	}
	return values, nil
}

// sample reads the files of the request and of the response.
func (o *hooksTestOptions) sample(ctx context.Context) (s hookdesk.Sample, err error) {
	s.Client, s.Server = o.Client, o.Server
	if s.Variables, err = parseSet(o.Variables); err != nil {
		return s, usageError{err: err}
	}
	if s.Request, err = o.object(ctx, "request", o.Request, `{"name": "a_tool", "arguments": {...}}`); err != nil {
		return s, err
	}
	if o.Response != "" {
		s.Response, err = o.object(ctx, "response", o.Response, `{"content": [{"type": "text", "text": "..."}]}`)
	}
	return s, err
}

// object reads a file with a JSON object.
func (o *hooksTestOptions) object(ctx context.Context, what, name, form string) (json.RawMessage, error) {
	data, err := o.app.host.readDefinition(ctx, name)
	if err != nil {
		return nil, err
	}
	var whole map[string]json.RawMessage
	if err := json.Unmarshal(data, &whole); err != nil {
		return nil, guideway.Errorf(guideway.CodeInvalid, "the %s in %s is no JSON object: %w", what, name, err).WithFix("write %s", form)
	}
	return json.RawMessage(data), nil
}

func (o *hooksTestOptions) write(answer *hookdesk.Trial) error {
	host := o.app.host
	if o.JSON {
		return writeJSON(host.Out, answer)
	}
	s := host.outStyles()
	paint := map[hookgraph.Status]func(string) string{hookgraph.StatusError: s.red, hookgraph.StatusRefused: s.yellow}[answer.Outcome]
	if paint == nil {
		paint = s.green
	}
	fmt.Fprintf(host.Out, "%s\n", s.bold(paint(string(answer.Outcome))))
	if answer.Error != nil {
		fmt.Fprintf(host.Out, "%s\n", oneLine(answer.Error.Message))
	}
	for _, n := range answer.Nodes {
		writeNodeTrace(host, s, n.NodeTrace)
	}
	fmt.Fprintf(host.Out, "%s %s\n", s.cyan("request"), oneLine(string(answer.Request.Params)))
	if len(answer.Response) > 0 {
		fmt.Fprintf(host.Out, "%s %s\n", s.cyan("response"), oneLine(string(answer.Response)))
	}
	for _, record := range answer.Audit {
		fmt.Fprintf(host.Out, "%s %s\n", s.cyan("audit"), oneLine(string(record)))
	}
	return nil
}

// writeNodeTrace prints what a node did.
func writeNodeTrace(host *Host, s styles, n hookgraph.NodeTrace) {
	more := ""
	switch {
	case n.Aside:
		more = ", aside"
	case n.Skipped:
		more = ", passed over"
	case n.Branch != "":
		more = ", " + string(n.Branch)
	}
	fmt.Fprintf(host.Out, "  %s %s\n", oneLine(n.ID), s.faint(fmt.Sprintf("(%s%s) %.1f ms", n.Kind, more, n.MS)))
	for _, line := range n.Console {
		fmt.Fprintf(host.Out, "    %s %s\n", s.faint(line.Level), oneLine(line.Text))
	}
	for _, c := range n.Changes {
		fmt.Fprintf(host.Out, "    %s %s %s\n", s.cyan(c.Op), oneLine(c.Pointer), oneLine(string(c.After)))
	}
	if n.Error != nil {
		place := ""
		if n.Error.Line > 0 {
			place = fmt.Sprintf(" (%s:%d:%d)", oneLine(n.Error.File), n.Error.Line, n.Error.Column)
		}
		fmt.Fprintf(host.Out, "    %s %s%s\n", s.red(oneLine(n.Error.Code)), oneLine(n.Error.Message), place)
	}
}
