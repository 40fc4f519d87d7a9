package steps

import (
	"fmt"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/definition/doc"
)

// Parse checks a document against the steps dialect and reads it. All problems
// are reported at once, in the order of the document; the workflow is nil if
// there is one.
func Parse(file string, root *doc.Node) (*Workflow, []guideway.Diagnostic) {
	p := &parser{file: file}
	at := place{ptr: "", name: "workflow", where: "at root level"}
	at.at(root)
	if root == nil || root.Kind != doc.Object {
		what := "nothing"
		if root != nil {
			what = describe(root)
		}
		p.errorf(at, CodeDefinitionObject, "write one object with id, name, description, version and steps",
			"A workflow is an object, but this is %s.", what)
		return nil, p.found
	}
	p.canonical = doc.Mark(root)
	w := p.workflow(at)
	w.Canonical = p.canonical
	p.structure(at, w)
	if len(p.found) > 0 {
		p.deepFaults()
		return nil, p.findings(guideway.SeverityError)
	}
	p.resolveBodies(at.key("steps"), w)
	return w, nil
}

// workflow reads the root.
func (p *parser) workflow(at place) *Workflow {
	p.object(at, "id", "name", "description", "version", "preconditions", "clarificationPrompts",
		"metaGuidance", "functionDefinitions", "steps")
	p.require(at, "id", "name", "description", "version", "steps")
	w := &Workflow{
		ID:                   p.id(at.key("id")),
		Name:                 p.text(at.key("name"), 1, 128),
		Description:          p.text(at.key("description"), 1, 512),
		Version:              p.version(at.key("version")),
		Preconditions:        p.sayings(at.key("preconditions")),
		ClarificationPrompts: p.sayings(at.key("clarificationPrompts")),
		MetaGuidance:         p.sayings(at.key("metaGuidance")),
		Functions:            p.functions(at.key("functionDefinitions")),
	}
	p.unique(at.key("functionDefinitions"))
	steps := at.key("steps")
	if !p.array(steps, "a list of steps") {
		return w
	}
	if len(steps.node.Items) == 0 {
		p.errorf(steps, CodeEmptyList, "add a step with id, title and prompt", "Field 'steps' %s is empty: a workflow has at least one step.", at.where)
	}
	w.Steps = make([]Step, 0, len(steps.node.Items))
	for i := range steps.node.Items {
		step := steps.index(i)
		where := fmt.Sprintf("in step %d%s", i+1, idSuffix(step.node))
		if isLoop(step.node) {
			where = fmt.Sprintf("in loop %d%s", i+1, idSuffix(step.node))
			if id := stepID(step.node); id != "" {
				where = "in loop '" + id + "'"
			}
			w.Steps = append(w.Steps, p.loopStep(step.in(where)))
			continue
		}
		w.Steps = append(w.Steps, p.step(step.in(where), ""))
	}
	return w
}

// sayings reads a list of different short texts.
func (p *parser) sayings(at place) []string {
	p.unique(at)
	return p.texts(at, 1, 256)
}

// version reads the workflow's version.
func (p *parser) version(at place) string {
	text := p.text(at, 0, 0)
	if at.node != nil && at.node.Kind == doc.String && !isVersion(text) {
		p.errorf(at, CodeVersion, versionFix(text),
			"Field 'version' %s has the value %s, which is not a semantic version (MAJOR.MINOR.PATCH).", at.where, quote(text))
	}
	return text
}

// versionFix says how to write a version; each line is a suggestion.
func versionFix(text string) string {
	fix := "use three numbers: MAJOR.MINOR.PATCH, such as 1.0.0 or 0.1.0"
	for _, better := range []string{strings.TrimLeft(text, "vV="), strings.TrimLeft(text, "vV=") + ".0", strings.TrimLeft(text, "vV=") + ".0.0"} {
		if isVersion(better) {
			return fix + "\nwrite '" + better + "'"
		}
	}
	return fix + "\nput a pre-release after a hyphen and a build after a plus sign: 1.0.0-alpha.1, 1.0.0+42"
}

// stepID gives the id of a step that may be anything.
func stepID(n *doc.Node) string {
	if id := n.Get("id"); id != nil && id.Kind == doc.String {
		return id.Text
	}
	return ""
}

// idSuffix names a step by its id where it has one.
func idSuffix(n *doc.Node) string {
	if id := stepID(n); id != "" {
		return " (" + quote(id) + ")"
	}
	return ""
}

// isLoop tells a loop from a standard step by what its author meant: its type,
// or else a member that only loops have. So what is wrong with a loop is said of
// the loop.
func isLoop(n *doc.Node) bool {
	if kind := n.Get("type"); kind != nil && kind.Kind == doc.String && kind.Text == "loop" {
		return true
	}
	return n.Get("loop") != nil || n.Get("body") != nil
}

// step reads a standard step. The hint says how to mend a property that is not
// allowed, where the step stands in a loop's body.
func (p *parser) step(at place, hint string) Step {
	if at.node.Kind != doc.Object {
		p.wrongType(at, "an object")
		return Step{}
	}
	p.closed(at, hint, []string{
		"id", "title", "prompt", "agentRole", "guidance", "askForFiles", "hasValidation", "requireConfirmation", "approval",
		"runCondition", "validationCriteria", "functionDefinitions", "functionCalls", "functionReferences",
	})
	p.require(at, "id", "title", "prompt")
	confirm, person := p.confirmation(at)
	return Step{
		ID:            p.id(at.key("id")),
		Title:         p.text(at.key("title"), 1, 128),
		Prompt:        p.text(at.key("prompt"), 1, 8192),
		AgentRole:     p.text(at.key("agentRole"), 10, 1024),
		Guidance:      p.texts(at.key("guidance"), 0, 0),
		AskForFiles:   p.flag(at.key("askForFiles")),
		HasValidation: p.flag(at.key("hasValidation")),
		Confirm:       confirm,
		Person:        person,
		RunCondition:  p.condition(at.key("runCondition")),
		Criteria:      p.criteria(at.key("validationCriteria")),
		Functions:     p.functions(at.key("functionDefinitions")),
		Calls:         p.calls(at.key("functionCalls")),
		References:    p.references(at.key("functionReferences")),
		Source: Source{
			Confirm:   p.source(at.key("requireConfirmation")),
			Condition: p.source(at.key("runCondition")),
			Criteria:  p.source(at.key("validationCriteria")),
		},
	}
}

// source is the value as canonical JSON.
func (p *parser) source(at place) string { return at.node.Source(p.canonical) }
