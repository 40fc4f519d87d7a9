package definition

import (
	"cmp"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/condition"
	"github.com/guideway-dev/guideway/internal/definition/doc"
	"github.com/guideway-dev/guideway/internal/definition/hooks"
	"github.com/guideway-dev/guideway/internal/definition/machines"
	"github.com/guideway-dev/guideway/internal/definition/phases"
	"github.com/guideway-dev/guideway/internal/definition/shape"
	"github.com/guideway-dev/guideway/internal/definition/steps"
)

// CodeNoWorkflow is of a document of another kind where a workflow is wanted.
const CodeNoWorkflow = "document-kind"

// Document is a document of any kind that loads. It is immutable. Only workflows
// are definitions that can be served and run.
type Document struct {
	Dialect guideway.Dialect
	Kind    phases.Kind
	// ID and Version are the document's own, "" where its kind has none; the
	// ID of a state is that of its workflow.
	ID, Version string
	// Hash and Canonical are as in Definition.
	Hash, Canonical string
	// One of these is set, by the kind.
	Workflow  *Definition
	Condition *condition.Expr
	State     *phases.State
	Skill     *phases.Skill
	Activity  *phases.Activity
	Graph     *hooks.Graph
	Module    *hooks.Module
	// Machine is a configuration that was read alone, without its script and its
	// roles; machines.LoadFile reads all of it.
	Machine *machines.Definition
	Roles   map[string]*machines.Role
}

// As says what a document is to be read as. What is empty is guessed from the
// document's members, and then from the place of its file; a document without any
// that tells is a step workflow.
type As struct {
	Dialect guideway.Dialect
	Kind    phases.Kind
}

// Dialects are the dialects that documents can have.
func Dialects() []guideway.Dialect {
	return []guideway.Dialect{guideway.DialectSteps, guideway.DialectPhases, guideway.DialectHooks, guideway.DialectMachines}
}

// Kinds are the kinds that documents of a dialect can be of; all that there are
// for no dialect.
func Kinds(dialect guideway.Dialect) []phases.Kind {
	var ofHooks []phases.Kind
	for _, kind := range hooks.Kinds() {
		ofHooks = append(ofHooks, phases.Kind(kind))
	}
	var ofMachines []phases.Kind
	for _, kind := range machines.Kinds() {
		ofMachines = append(ofMachines, phases.Kind(kind))
	}
	switch dialect {
	case guideway.DialectMachines:
		return ofMachines
	case guideway.DialectSteps:
		return []phases.Kind{phases.KindWorkflow}
	case guideway.DialectPhases:
		return phases.Kinds()
	case guideway.DialectHooks:
		return ofHooks
	default:
		return append(append(phases.Kinds(), ofHooks...), ofMachines...)
	}
}

// Schema is the published JSON Schema of a dialect's kind; nil where there is
// none. No kind means a workflow, a graph of hooks, or a machine.
func Schema(as As) []byte {
	if as.Kind == "" {
		as.Kind = mainKind(as.Dialect)
	}
	switch {
	case as.Dialect == guideway.DialectMachines:
		return machines.Schema(machines.Kind(as.Kind))
	case as.Dialect == guideway.DialectHooks:
		return hooks.Schema(hooks.Kind(as.Kind))
	case as.Dialect == guideway.DialectPhases:
		return phases.Schema(as.Kind)
	case as.Dialect == guideway.DialectSteps && as.Kind == phases.KindWorkflow:
		return steps.Schema()
	default:
		return nil
	}
}

// mainKind is the kind that documents of a dialect are of, unless another is said.
func mainKind(dialect guideway.Dialect) phases.Kind {
	switch dialect {
	case guideway.DialectHooks:
		return phases.Kind(hooks.KindGraph)
	case guideway.DialectMachines:
		return phases.Kind(machines.KindMachine)
	default:
		return phases.KindWorkflow
	}
}

// ParseAs reads a document of any kind. The diagnostics are what keeps it from
// loading, in the order of the document; the document is nil if there is one.
func ParseAs(file string, data []byte, as As) (*Document, []guideway.Diagnostic) {
	document, _, found := parse(file, data, as)
	return document, found
}

// CheckAs is ParseAs, and what a linter says if the document loads.
func CheckAs(file string, data []byte, as As) (*Document, []guideway.Diagnostic) {
	document, root, found := parse(file, data, as)
	switch {
	case document == nil:
		return nil, found
	case document.Workflow != nil:
		return document, lint(document.Workflow, root, phases.Layout{})
	case document.Condition != nil:
		return document, phases.LintCondition(document.Condition, root, file)
	case document.Skill != nil:
		return document, phases.LintSkill(root, file)
	case document.Activity != nil:
		return document, phases.LintActivity(document.Activity, root, file)
	case document.Graph != nil:
		return document, hooks.Lint(document.Graph, root, file)
	case document.Machine != nil:
		_, found = machines.Check(alone(file, data))
		return document, found
	default:
		return document, nil
	}
}

// Guess says what a document would be read as.
func Guess(file string, data []byte, as As) As {
	root, _ := doc.Parse(file, data, doc.Limits{})
	if root == nil {
		return as
	}
	return as.guess(file, root)
}

// machine is guess for what is of the machines dialect; ok says whether it is.
func (as As) machine(file string, root *doc.Node) (of As, ok bool) {
	kind := phases.Kind(machines.Guess(file, root))
	switch {
	case as.Dialect == guideway.DialectMachines:
	case as.Dialect != "" || kind == "" || as.Kind != "" && as.Kind != kind:
		return as, false
	}
	as.Dialect = guideway.DialectMachines
	as.Kind = cmp.Or(as.Kind, kind, mainKind(as.Dialect))
	return as, true
}

// guess fills in what is not said.
func (as As) guess(file string, root *doc.Node) As {
	if of, ok := as.machine(file, root); ok {
		return of
	}
	kind := cmp.Or(phases.Guess(root), phases.KindAt(file))
	if hook := hooks.Guess(root); as.Dialect == guideway.DialectHooks || as.Dialect == "" && hook != "" && (kind == "" || hook == hooks.KindGraph) {
		as.Dialect = guideway.DialectHooks
		as.Kind = cmp.Or(as.Kind, phases.Kind(hook), mainKind(as.Dialect))
		return as
	}
	if as.Dialect == "" {
		as.Dialect = guideway.DialectSteps
		if kind == phases.KindWorkflow || kind != "" && root.Get("steps") == nil || as.Kind != "" && as.Kind != phases.KindWorkflow {
			as.Dialect = guideway.DialectPhases
		}
	}
	switch {
	case as.Kind != "":
	case as.Dialect == guideway.DialectSteps || kind == "":
		as.Kind = phases.KindWorkflow
	default:
		as.Kind = kind
	}
	return as
}

// parse reads a document, and gives it with its positions.
func parse(file string, data []byte, as As) (*Document, *doc.Node, []guideway.Diagnostic) {
	root, found := doc.Parse(file, data, doc.Limits{})
	if root == nil {
		return nil, nil, found
	}
	as = as.guess(file, root)
	document := &Document{Dialect: as.Dialect, Kind: as.Kind}
	if as.Dialect == guideway.DialectMachines {
		found = document.readMachines(file, root, data) // which reads the text itself
	} else {
		found = append(found, document.read(file, root)...)
	}
	if len(found) > 0 {
		doc.Sort(found)
		return nil, nil, found
	}
	document.Hash = hash(document.Canonical)
	if document.Workflow != nil {
		document.Workflow.Hash = document.Hash
	}
	return document, root, nil
}

// read has the document read by the parser of its kind, and gives what is wrong.
func (d *Document) read(file string, root *doc.Node) (found []guideway.Diagnostic) {
	switch d.Dialect {
	case guideway.DialectSteps:
		return d.readSteps(file, root)
	case guideway.DialectHooks:
		return d.readHooks(file, root)
	default:
	}
	switch d.Kind {
	case phases.KindWorkflow:
		return d.readPhases(file, root)
	case phases.KindCondition:
		if d.Condition, found = phases.ParseCondition(file, root); d.Condition != nil {
			d.Canonical = string(doc.Canonical(root))
		}
	case phases.KindState:
		if d.State, found = phases.ParseState(file, root); d.State != nil {
			d.ID, d.Version, d.Canonical = d.State.WorkflowID, d.State.WorkflowVersion, d.State.Canonical
		}
	case phases.KindSkill:
		if d.Skill, found = phases.ParseSkill(file, root); d.Skill != nil {
			d.ID, d.Version, d.Canonical = d.Skill.ID, d.Skill.Version, d.Skill.Canonical
		}
	case phases.KindActivity:
		if d.Activity, found = phases.ParseActivity(file, root); d.Activity != nil {
			d.ID, d.Version, d.Canonical = d.Activity.ID, d.Activity.Version, d.Activity.Canonical
		}
	default:
		return []guideway.Diagnostic{d.unknown(file, root)}
	}
	return found
}

// readSteps reads a step workflow.
func (d *Document) readSteps(file string, root *doc.Node) []guideway.Diagnostic {
	if d.Kind != phases.KindWorkflow {
		return []guideway.Diagnostic{d.unknown(file, root)}
	}
	w, found := steps.Parse(file, root)
	if len(found) > 0 {
		return found
	}
	d.Workflow = &Definition{
		Dialect: d.Dialect, ID: w.ID, Name: w.Name, Description: w.Description, Version: w.Version,
		Steps: w, File: file, Canonical: w.Canonical,
	}
	d.ID, d.Version, d.Canonical = w.ID, w.Version, w.Canonical
	return nil
}

// readPhases reads a phase workflow.
func (d *Document) readPhases(file string, root *doc.Node) []guideway.Diagnostic {
	w, found := phases.Parse(file, root)
	if len(found) > 0 {
		return found
	}
	d.Workflow = &Definition{
		Dialect: d.Dialect, ID: w.ID, Name: w.Title, Description: w.Description, Version: w.Version,
		Phases: w, File: file, Canonical: w.Canonical,
	}
	d.ID, d.Version, d.Canonical = w.ID, w.Version, w.Canonical
	return nil
}

// readHooks reads a hook graph or a module.
func (d *Document) readHooks(file string, root *doc.Node) (found []guideway.Diagnostic) {
	switch hooks.Kind(d.Kind) {
	case hooks.KindGraph:
		if d.Graph, found = hooks.Parse(file, root); d.Graph != nil {
			d.ID, d.Version, d.Canonical = d.Graph.ID, d.Graph.Version, d.Graph.Canonical
		}
	case hooks.KindModule:
		if d.Module, found = hooks.ParseModule(file, root); d.Module != nil {
			d.ID, d.Canonical = d.Module.ID, d.Module.Canonical
		}
	default:
		return []guideway.Diagnostic{d.unknown(file, root)}
	}
	return found
}

// alone is a configuration of a machine without what lies beside it.
func alone(file string, data []byte) machines.Files {
	return machines.Files{Config: machines.File{Path: file, Data: data}, Alone: true}
}

// readMachines reads a configuration of a machine, or a file of roles.
func (d *Document) readMachines(file string, root *doc.Node, data []byte) (found []guideway.Diagnostic) {
	switch machines.Kind(d.Kind) {
	case machines.KindMachine:
		if d.Machine, found = machines.Parse(alone(file, data)); d.Machine != nil {
			d.ID, d.Version, d.Canonical = d.Machine.Name, d.Machine.Version, string(doc.Canonical(root))
		}
	case machines.KindRoles:
		if d.Roles, found = machines.ParseRoles(file, data); d.Roles != nil {
			d.Canonical = string(doc.Canonical(root))
		}
	default:
		return []guideway.Diagnostic{d.unknown(file, root)}
	}
	return found
}

// unknown is what to say of a kind that the dialect does not have.
func (d *Document) unknown(file string, root *doc.Node) guideway.Diagnostic {
	var names []string
	for _, kind := range Kinds(d.Dialect) {
		names = append(names, string(kind))
	}
	return guideway.Diagnostic{
		Severity: guideway.SeverityError, Code: CodeNoWorkflow, File: file, Line: root.Line, Column: root.Column,
		Message: "The " + string(d.Dialect) + " dialect has no documents of the kind '" + string(d.Kind) + "'.",
		Fix:     "ask for one of: " + shape.List(names),
	}
}

// withArticle puts an article before a kind.
func withArticle(kind phases.Kind) string {
	if kind == phases.KindActivity {
		return "an " + string(kind)
	}
	return "a " + string(kind)
}
