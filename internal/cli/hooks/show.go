package hooks

import "github.com/guideway-dev/guideway/internal/cli/app"

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/guideway-dev/guideway/internal/catalog/graph"
	hookadmin "github.com/guideway-dev/guideway/internal/hooks/admin"
	hookdef "github.com/guideway-dev/guideway/internal/hooks/definition"
	"github.com/guideway-dev/guideway/internal/platform/visible"
	"github.com/spf13/cobra"
)

// HooksShowOptions is the command line of guideway hooks show.
type HooksShowOptions struct {
	App  *app.App
	Name string
	// Graph is the format of a drawing; "" prints text.
	Graph   string
	Scripts bool
	JSON    bool
}

func newHooksShowCmd(a *app.App, run func(context.Context, *HooksShowOptions) error) *cobra.Command {
	o := &HooksShowOptions{App: a}
	cmd := &cobra.Command{
		Use:               "show {ID|FILE}",
		Args:              app.ExactArgs(1, "a hook graph, by id or file", "guideway hooks show redact-secrets"),
		ValidArgsFunction: completeHooks(a),
		RunE:              app.RunWithArg(run, o, &o.Name),
	}
	app.AddGraphFlag(cmd, &o.Graph, "draw the graph as a flowchart in this `format`: "+app.GraphMermaid)
	cmd.Flags().BoolVar(&o.Scripts, "scripts", false, "print the scripts")
	app.AddJSONFlag(cmd, &o.JSON)
	return cmd
}

// hooksShowAnswer is the answer of guideway hooks show --json.
type hooksShowAnswer struct {
	hookRow
	Variables map[string]json.RawMessage `json:"variables,omitempty"`
	Nodes     []hookNode                 `json:"nodes"`
	Drawing   *app.GraphOutput           `json:"graph,omitempty"`
}

// hookNode is a node with its outgoing edges.
type hookNode struct {
	ID         string             `json:"id"`
	Type       hookdef.NodeKind   `json:"type"`
	Label      string             `json:"label"`
	Blocking   *bool              `json:"blocking,omitempty"`
	Answers    bool               `json:"answers,omitempty"`
	TimeoutMS  int64              `json:"timeoutMs,omitempty"`
	Script     string             `json:"script,omitempty"`
	Source     string             `json:"source,omitempty"`
	Condition  string             `json:"condition,omitempty"`
	Handles    []hookdef.Event    `json:"handles,omitempty"`
	OnMismatch hookdef.OnMismatch `json:"onMismatch,omitempty"`
	To         []hookEdge         `json:"to,omitempty"`
}

// hookEdge is an outgoing edge.
type hookEdge struct {
	ID     string         `json:"id"`
	Branch hookdef.Branch `json:"branch,omitempty"`
}

func runHooksShow(ctx context.Context, o *HooksShowOptions) error {
	d, err := OpenHooks(ctx, o.App)
	if err != nil {
		return err
	}
	e, err := d.Find(ctx, o.Name)
	if err != nil {
		return err
	}
	return o.Show(d, e)
}

// Show prints a graph in the requested format.
func (o *HooksShowOptions) Show(d *HookDeps, e *catalog.HookEntry) error {
	if e.Graph == nil {
		return guideway.Errorf(guideway.CodeInvalidDefinition, "the hook graph %s does not load: %s", e.ID, e.Problem).
			WithFix("guideway hooks validate %s", e.ID)
	}
	out := o.App.Host.Out
	drawing := ""
	if o.Graph != "" {
		drawing = graph.Hooks(e.Graph).Mermaid()
	}
	switch {
	case o.JSON:
		answer := hooksShowAnswer{hookRow: d.newRow(e), Variables: e.Graph.Variables, Nodes: hookNodes(e, o.Scripts)}
		if drawing != "" {
			answer.Drawing = &app.GraphOutput{Format: o.Graph, Text: drawing}
		}
		return app.WriteJSON(out, answer)
	case drawing != "":
		fmt.Fprint(out, drawing)
	default:
		t := &hookText{app.NewTextPrinter(o.App.Host, out)}
		t.writeGraph(d, e, o.Scripts)
	}
	return nil
}

// hookNodes returns the nodes of a graph in order of execution.
func hookNodes(e *catalog.HookEntry, scripts bool) []hookNode {
	var nodes []hookNode
	var visit func(id string)
	visit = func(id string) {
		n := e.Graph.Node(id)
		node := hookNode{ID: n.ID, Type: n.Kind, Label: n.Title()}
		if n.Kind == hookdef.HookNode {
			node.Blocking, node.Answers, node.TimeoutMS = &n.Hook.Blocking, n.Hook.Answers, n.Hook.Timeout.Milliseconds()
			node.Handles = n.Hook.Handles
			if e.Linked != nil {
				node.Script = e.Linked.Scripts[n.ID].Name
				if scripts {
					node.Source = e.Linked.Scripts[n.ID].Text
				}
			}
		}
		if n.Kind == hookdef.ConditionNode {
			node.Condition, node.OnMismatch = n.Condition.String(), n.OnMismatch
		}
		for _, edge := range e.Graph.Edges {
			if edge.Source == id {
				node.To = append(node.To, hookEdge{ID: edge.Target, Branch: edge.Branch})
			}
		}
		nodes = append(nodes, node)
		for _, way := range node.To {
			visit(way.ID)
		}
	}
	for i := range e.Graph.Nodes {
		if e.Graph.Nodes[i].Kind == hookdef.Start {
			visit(e.Graph.Nodes[i].ID)
		}
	}
	return nodes
}

// hookText prints a graph as text.
type hookText struct{ app.TextPrinter }

func (v *hookText) writeGraph(d *HookDeps, e *catalog.HookEntry, scripts bool) {
	s, g := v.Styles, e.Graph
	about := strings.TrimSpace(fmt.Sprintf("%s %s", g.ID, g.Version))
	fmt.Fprintf(v.Out, "%s %s\n", s.Bold(app.OneLine(g.Name)), s.Faint(fmt.Sprintf("%s (%s, %s)", app.OneLine(about), d.stateText(e), app.OneLine(e.Path))))
	for _, o := range e.Overrides {
		fmt.Fprintln(v.Out, s.Faint(fmt.Sprintf("Overrides %s of %s (%s): guideway hooks show %s@%s", o.Version, o.Source.Name, app.OneLine(o.Path), g.ID, o.Source.Name)))
	}
	v.PrintText("", g.Description)
	fmt.Fprintf(v.Out, "%s %s, for %s, with the order %d\n", s.Cyan("around"), typesText(g), app.OneLine(bindingText(g.Bindings)), hookadmin.OrderOf(d.Active.Set, g))
	for _, name := range slices.Sorted(maps.Keys(g.Variables)) {
		fmt.Fprintf(v.Out, "%s %s = %s\n", s.Cyan("variable"), visible.EscapeLine(name), visible.EscapeText(string(g.Variables[name])))
	}
	if e.Problem != "" {
		fmt.Fprintf(v.Out, "%s %s\n", s.Red("error:"), app.OneLine(e.Problem))
	}
	if e.Linked != nil {
		fmt.Fprintf(v.Out, "%s\n", s.Faint("pin "+e.Linked.Pin))
	}
	fmt.Fprintf(v.Out, "\n%s\n", s.Bold("Nodes"))
	for _, n := range hookNodes(e, scripts) {
		v.writeNode(n)
	}
}

// stateText returns the state of a graph as text.
func (d *HookDeps) stateText(e *catalog.HookEntry) string {
	return cmp.Or(string(d.graphState(e)), "file")
}

func (v *hookText) writeNode(n hookNode) {
	s := v.Styles
	what := string(n.Type)
	if n.Blocking != nil && !*n.Blocking {
		what = "fire-and-forget hook"
	}
	fmt.Fprintf(v.Out, "  %s %s\n", s.Bold(app.OneLine(n.Label)), s.Faint("("+app.OneLine(n.ID)+", "+what+")"))
	if n.Condition != "" {
		fmt.Fprintf(v.Out, "    %s %s\n", s.Cyan("if"), app.OneLine(n.Condition))
		if n.OnMismatch != "" {
			fmt.Fprintf(v.Out, "    %s %s\n", s.Cyan("for different types"), n.OnMismatch)
		}
	}
	if n.Script != "" {
		limit := ""
		if n.TimeoutMS > 0 {
			limit = fmt.Sprintf(", at most %d ms", n.TimeoutMS)
		}
		fmt.Fprintf(v.Out, "    %s %s%s\n", s.Cyan("runs"), app.OneLine(n.Script), limit)
	}
	for _, event := range n.Handles {
		fmt.Fprintf(v.Out, "    %s %s\n", s.Cyan("handles"), event)
	}
	if n.Answers {
		fmt.Fprintf(v.Out, "    %s instead of the upstream\n", s.Cyan("answers"))
	}
	for _, way := range n.To {
		branch := ""
		if way.Branch != "" {
			branch = " if " + string(way.Branch)
		}
		fmt.Fprintf(v.Out, "    %s %s%s\n", s.Cyan("to"), app.OneLine(way.ID), branch)
	}
	if n.Source != "" {
		for line := range strings.SplitSeq(strings.TrimRight(visible.EscapeScript(n.Source), "\n"), "\n") {
			fmt.Fprintf(v.Out, "    %s %s\n", s.Faint("|"), line)
		}
	}
}
