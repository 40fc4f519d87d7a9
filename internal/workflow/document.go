// Package workflow parses a document into a definition: validated against its dialect,
// and hashed.
package workflow

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/guideway-dev/guideway"
	hookdef "github.com/guideway-dev/guideway/internal/hooks/definition"
	machinedef "github.com/guideway-dev/guideway/internal/machine/definition"
	"github.com/guideway-dev/guideway/internal/platform/lists"
	"github.com/guideway-dev/guideway/internal/workflow/criteria"
	"github.com/guideway-dev/guideway/internal/workflow/doc"
	"github.com/guideway-dev/guideway/internal/workflow/expr"
	"github.com/guideway-dev/guideway/internal/workflow/phases"
	"github.com/guideway-dev/guideway/internal/workflow/shape"
	"github.com/guideway-dev/guideway/internal/workflow/steps"
)

// CodeNoWorkflow reports a document that is not a workflow, or that has a kind unknown to
// its dialect.
const CodeNoWorkflow = "document-kind"

// Document is a valid document of any kind. It is immutable. Only workflows are definitions
// that can be served and run.
type Document struct {
	Dialect guideway.Dialect
	Kind    phases.Kind
	// ID and Version come from the document. They are "" if documents of its kind have
	// none. The ID of a state is the ID of the workflow that the state belongs to.
	ID, Version string
	// Hash and Canonical are as in Definition.
	Hash, Canonical string
	// One of the following fields is set, according to the kind.
	Workflow  *Definition
	Condition *expr.Expr
	State     *phases.State
	Skill     *phases.Skill
	Activity  *phases.Activity
	Graph     *hookdef.Graph
	Module    *hookdef.Module
	// Machine is a configuration without its script and its roles; machinedef.LoadFile reads
	// all of it.
	Machine *machinedef.Definition
	Roles   map[string]*machinedef.Role
}

// As selects how to read a document. Empty fields are guessed from the document's members,
// and then from the path of its file; the default is a step workflow.
type As struct {
	Dialect guideway.Dialect
	Kind    phases.Kind
}

// Dialects returns the dialects of documents.
func Dialects() []guideway.Dialect {
	return []guideway.Dialect{guideway.DialectSteps, guideway.DialectPhases, guideway.DialectHooks, guideway.DialectMachines}
}

// Kinds returns the document kinds of a dialect, or all kinds if the dialect is empty.
func Kinds(dialect guideway.Dialect) []phases.Kind {
	switch dialect {
	case guideway.DialectMachines:
		return machinedef.Kinds()
	case guideway.DialectSteps:
		return []phases.Kind{phases.KindWorkflow}
	case guideway.DialectPhases:
		return phases.Kinds()
	case guideway.DialectHooks:
		return hookdef.Kinds()
	default:
		return slices.Concat(phases.Kinds(), hookdef.Kinds(), machinedef.Kinds())
	}
}

// Schema returns the published JSON Schema of a dialect's kind, or nil if there is no
// schema. The default kind is a workflow, a hook graph, or a machine.
func Schema(as As) []byte {
	if as.Kind == "" {
		as.Kind = mainKind(as.Dialect)
	}
	switch {
	case as.Dialect == guideway.DialectMachines:
		return machinedef.Schema(as.Kind)
	case as.Dialect == guideway.DialectHooks:
		return hookdef.Schema(as.Kind)
	case as.Dialect == guideway.DialectPhases:
		return phases.Schema(as.Kind)
	case as.Dialect == guideway.DialectSteps && as.Kind == phases.KindWorkflow:
		return steps.Schema()
	default:
		return nil
	}
}

// mainKind returns the default document kind of a dialect.
func mainKind(dialect guideway.Dialect) phases.Kind {
	switch dialect {
	case guideway.DialectHooks:
		return hookdef.KindGraph
	case guideway.DialectMachines:
		return machinedef.KindMachine
	default:
		return phases.KindWorkflow
	}
}

// ParseAs parses a document of any kind. The diagnostics are the errors that prevent
// loading, in document order; the document is nil if there are any.
func ParseAs(file string, data []byte, as As) (*Document, []guideway.Diagnostic) {
	document, _, found := parseDocument(file, data, as)
	return document, found
}

// CheckAs parses a document like ParseAs, and runs the linter if it loads.
func CheckAs(file string, data []byte, as As) (*Document, []guideway.Diagnostic) {
	document, root, found := parseDocument(file, data, as)
	switch {
	case document == nil:
		return nil, found
	case document.Workflow != nil:
		return document, lintWorkflow(document.Workflow, root, phases.Layout{})
	case document.Condition != nil:
		return document, phases.LintCondition(document.Condition, root, file)
	case document.Skill != nil:
		return document, phases.LintSkill(root, file)
	case document.Activity != nil:
		return document, phases.LintActivity(document.Activity, root, file)
	case document.Graph != nil:
		return document, hookdef.Lint(document.Graph, root, file)
	case document.Machine != nil:
		_, found = machinedef.Check(standalone(file, data))
		return document, found
	default:
		report := shape.Report{File: file}
		report.LintHidden(shape.Root(root, "document"))
		return document, report.Findings(guideway.SeverityWarning)
	}
}

// Guess returns how a document would be read.
func Guess(file string, data []byte, as As) As {
	root, _ := doc.Parse(file, data, doc.Limits{})
	if root == nil {
		return as
	}
	return as.guessKind(file, root)
}

// guessMachine is like Guess for documents of the machines dialect; ok reports whether the
// document is one.
func (as As) guessMachine(file string, root *doc.Node) (of As, ok bool) {
	kind := machinedef.Guess(file, root)
	switch {
	case as.Dialect == guideway.DialectMachines:
	case as.Dialect != "" || kind == "" || as.Kind != "" && as.Kind != kind:
		return as, false
	}
	as.Dialect = guideway.DialectMachines
	as.Kind = cmp.Or(as.Kind, kind, mainKind(as.Dialect))
	return as, true
}

// guessKind returns as with its empty fields filled in.
func (as As) guessKind(file string, root *doc.Node) As {
	if of, ok := as.guessMachine(file, root); ok {
		return of
	}
	kind := cmp.Or(phases.Guess(root), phases.KindAt(file))
	if hook := hookdef.Guess(root); as.Dialect == guideway.DialectHooks || as.Dialect == "" && hook != "" && (kind == "" || hook == hookdef.KindGraph) {
		as.Dialect = guideway.DialectHooks
		as.Kind = cmp.Or(as.Kind, hook, mainKind(as.Dialect))
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

// parseDocument parses a document, and also returns its tree with positions.
func parseDocument(file string, data []byte, as As) (*Document, *doc.Node, []guideway.Diagnostic) {
	root, found := doc.Parse(file, data, doc.Limits{})
	if root == nil {
		return nil, nil, found
	}
	as = as.guessKind(file, root)
	document := &Document{Dialect: as.Dialect, Kind: as.Kind}
	if as.Dialect == guideway.DialectMachines {
		found = document.readMachines(file, root, data) // the parsers of machines need the text
	} else {
		found = append(found, document.readKind(file, root)...)
	}
	if len(found) > 0 {
		doc.Sort(found)
		return nil, nil, found
	}
	document.Hash = hashText(document.Canonical)
	if document.Workflow != nil {
		document.Workflow.Hash = document.Hash
	}
	return document, root, nil
}

// readKind parses the document with the parser of its kind, and returns its errors.
func (d *Document) readKind(file string, root *doc.Node) (found []guideway.Diagnostic) {
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
		return []guideway.Diagnostic{d.unknownKind(file, root)}
	}
	return found
}

// readSteps parses a step workflow.
func (d *Document) readSteps(file string, root *doc.Node) []guideway.Diagnostic {
	if d.Kind != phases.KindWorkflow {
		return []guideway.Diagnostic{d.unknownKind(file, root)}
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

// readPhases parses a phase workflow.
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

// readHooks parses a hook graph or a module.
func (d *Document) readHooks(file string, root *doc.Node) (found []guideway.Diagnostic) {
	switch d.Kind {
	case hookdef.KindGraph:
		if d.Graph, found = hookdef.Parse(file, root); d.Graph != nil {
			d.ID, d.Version, d.Canonical = d.Graph.ID, d.Graph.Version, d.Graph.Canonical
		}
	case hookdef.KindModule:
		if d.Module, found = hookdef.ParseModule(file, root); d.Module != nil {
			d.ID, d.Canonical = d.Module.ID, d.Module.Canonical
		}
	default:
		return []guideway.Diagnostic{d.unknownKind(file, root)}
	}
	return found
}

// standalone returns the files of a machine that consist only of its configuration.
func standalone(file string, data []byte) machinedef.Files {
	return machinedef.Files{Config: machinedef.File{Path: file, Data: data}, Alone: true}
}

// readMachines parses a machine configuration, or a role file.
func (d *Document) readMachines(file string, root *doc.Node, data []byte) (found []guideway.Diagnostic) {
	switch d.Kind {
	case machinedef.KindMachine:
		if d.Machine, found = machinedef.Parse(standalone(file, data)); d.Machine != nil {
			d.ID, d.Version, d.Canonical = d.Machine.Name, d.Machine.Version, string(doc.Canonical(root))
		}
	case machinedef.KindRoles:
		if d.Roles, found = machinedef.ParseRoles(file, data); d.Roles != nil {
			d.Canonical = string(doc.Canonical(root))
		}
	default:
		return []guideway.Diagnostic{d.unknownKind(file, root)}
	}
	return found
}

// unknownKind returns the diagnostic for a kind that the dialect does not have.
func (d *Document) unknownKind(file string, root *doc.Node) guideway.Diagnostic {
	names := lists.Map(Kinds(d.Dialect), func(kind phases.Kind) string { return string(kind) })
	return guideway.Diagnostic{
		Severity: guideway.SeverityError, Code: CodeNoWorkflow, File: file, Line: root.Line, Column: root.Column,
		Message: "The " + string(d.Dialect) + " dialect has no documents of kind '" + string(d.Kind) + "'.",
		Fix:     "use one of: " + shape.List(names),
	}
}

// withArticle adds an indefinite article to a kind.
func withArticle(kind phases.Kind) string {
	if kind == phases.KindActivity {
		return "an " + string(kind)
	}
	return "a " + string(kind)
}

// CheckRules returns the checks in the criteria of all steps, in document order.
func (d *Definition) CheckRules() (list []*criteria.CheckRule) {
	if d.Phases != nil {
		for i := range d.Phases.Phases {
			phase := &d.Phases.Phases[i]
			for j := range phase.Steps {
				list = append(list, phase.Steps[j].Criteria.CheckRules()...)
			}
			for j := range phase.Loops {
				for k := range phase.Loops[j].Steps {
					list = append(list, phase.Loops[j].Steps[k].Criteria.CheckRules()...)
				}
			}
		}
		return list
	}
	return stepCheckRules(d.Steps.Steps)
}

// stepCheckRules returns the checks of steps and of the loops among them. The body of a loop
// that is a step of its own is read there.
func stepCheckRules(list []steps.Step) (out []*criteria.CheckRule) {
	for i := range list {
		out = append(out, list[i].Criteria.CheckRules()...)
		if l := list[i].Loop; l != nil && l.BodyRef == "" {
			out = append(out, stepCheckRules(l.Body)...)
		}
	}
	return out
}

// Definition is a valid workflow. It is immutable.
type Definition struct {
	// Dialect is the dialect of the document.
	Dialect guideway.Dialect
	// ID, Name, Description and Version come from the document; Name is the title of a
	// phase workflow.
	ID, Name, Description, Version string
	// Hash is "sha256:" and the hexadecimal hash of Canonical. It pins the meaning of the
	// document, independent of white space, the order of keys and the format.
	Hash string
	// Steps is set in a definition of the steps dialect, Phases in a definition of the
	// phases dialect; the other field is nil.
	Steps  *steps.Workflow
	Phases *phases.Workflow
	// File is the path of the document.
	File string
	// Source and Revision are the catalog source and its revision; empty if the definition
	// does not come from a catalog.
	Source, Revision string
	// Canonical is the document as RFC 8785 JSON.
	Canonical string
}

// Parse parses a workflow. The diagnostics are the errors that prevent loading, in document
// order; the definition is nil if there are any. Other diagnostics come from Lint,
// including errors in patterns and schemas. A document of a different kind is an error; use
// ParseAs for it.
func Parse(file string, data []byte) (*Definition, []guideway.Diagnostic) {
	d, _, found := parseWorkflow(file, data)
	return d, found
}

// Check parses a document like Parse, and runs Lint if it loads. A definition is usable if
// no diagnostic is an error.
func Check(file string, data []byte) (*Definition, []guideway.Diagnostic) {
	d, root, found := parseWorkflow(file, data)
	if d == nil {
		return nil, found
	}
	return d, lintWorkflow(d, root, phases.Layout{})
}

// parseWorkflow is like Parse, but also returns the tree with its positions, which the
// definition does not keep in memory.
func parseWorkflow(file string, data []byte) (*Definition, *doc.Node, []guideway.Diagnostic) {
	document, root, found := parseDocument(file, data, As{})
	switch {
	case document == nil:
		return nil, nil, found
	case document.Workflow == nil:
		fix := "use a document with 'steps', or with 'phases' and 'initialPhase'; documents of other kinds are separate files"
		if document.Machine != nil || document.Roles != nil {
			fix = "store agent machines, with their scripts and roles, in the directory 'machines' of the source"
		}
		return nil, nil, []guideway.Diagnostic{{
			Severity: guideway.SeverityError, Code: CodeNoWorkflow, File: file, Line: root.Line, Column: root.Column,
			Message: fmt.Sprintf("The document is %s, not a workflow.", withArticle(document.Kind)),
			Fix:     fix,
		}}
	}
	return document.Workflow, root, nil
}

// hashText returns Definition.Hash of a canonical text without copying the text.
func hashText(canonical string) string {
	h, part := sha256.New(), make([]byte, 4096)
	for canonical != "" {
		n := copy(part, canonical)
		h.Write(part[:n])
		canonical = canonical[n:]
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// Lint reports legal but probably unintended parts of a definition, and the errors that do
// not prevent loading, in document order. data must be the bytes that the definition was
// parsed from; if they are missing or have another meaning, the diagnostics have pointers
// but no lines. The layout names the files in the directory of the definition.
func Lint(d *Definition, data []byte, layout phases.Layout) []guideway.Diagnostic {
	root, _ := doc.Parse(d.File, data, doc.Limits{})
	if root != nil && string(doc.Canonical(root)) == d.Canonical {
		return lintWorkflow(d, root, layout)
	}
	root, _ = doc.Parse("canonical.json", []byte(d.Canonical), doc.Limits{MaxBytes: len(d.Canonical)})
	found := lintWorkflow(d, root, layout)
	for i := range found {
		found[i].Line, found[i].Column = 0, 0
	}
	return found
}

// lintWorkflow calls the linter of the dialect.
func lintWorkflow(d *Definition, root *doc.Node, layout phases.Layout) []guideway.Diagnostic {
	if d.Phases != nil {
		return phases.Lint(d.Phases, root, d.File, layout)
	}
	return steps.Lint(d.Steps, root, d.File)
}
