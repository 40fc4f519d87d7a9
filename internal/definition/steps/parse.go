package steps

import (
	"fmt"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/definition/doc"
	"github.com/guideway-dev/guideway/internal/definition/shape"
)

// Parse checks a document against the steps dialect and reads it. All problems
// are reported at once, in the order of the document; the workflow is nil if
// there is one.
func Parse(file string, root *doc.Node) (*Workflow, []guideway.Diagnostic) {
	p, at := newParser(file), shape.Root(root, "workflow")
	if !p.Document(at, "A workflow", "write one object with id, name, description, version and steps") {
		return nil, p.Found
	}
	p.Canonical = doc.Mark(root)
	w := p.workflow(at)
	w.Canonical = p.Canonical
	p.structure(at, w)
	if len(p.Found) > 0 {
		p.deepFaults()
		return nil, p.Findings(guideway.SeverityError)
	}
	p.resolveBodies(at.Key("steps"), w)
	return w, nil
}

// workflow reads the root.
func (p *parser) workflow(at shape.Place) *Workflow {
	p.Object(at, "id", "name", "description", "version", "preconditions", "clarificationPrompts",
		"metaGuidance", "functionDefinitions", "contextRules", "steps")
	p.Require(at, "id", "name", "description", "version", "steps")
	w := &Workflow{
		ID:                   p.id(at.Key("id")),
		Name:                 p.Text(at.Key("name"), 1, 128),
		Description:          p.Text(at.Key("description"), 1, 512),
		Version:              p.version(at.Key("version")),
		Preconditions:        p.sayings(at.Key("preconditions")),
		ClarificationPrompts: p.sayings(at.Key("clarificationPrompts")),
		MetaGuidance:         p.sayings(at.Key("metaGuidance")),
		Functions:            p.functions(at.Key("functionDefinitions")),
		ContextRules:         p.ContextRules(at.Key("contextRules")),
	}
	p.Unique(at.Key("functionDefinitions"))
	steps := at.Key("steps")
	if !p.Array(steps, "a list of steps") {
		return w
	}
	if len(steps.Node.Items) == 0 {
		p.Errorf(steps, CodeEmptyList, "add a step with id, title and prompt", "Field 'steps' %s is empty: a workflow has at least one step.", at.Where)
	}
	w.Steps = make([]Step, 0, len(steps.Node.Items))
	for i := range steps.Node.Items {
		step := steps.Index(i)
		where := fmt.Sprintf("in step %d%s", i+1, idSuffix(step.Node))
		if isLoop(step.Node) {
			where = fmt.Sprintf("in loop %d%s", i+1, idSuffix(step.Node))
			if id := stepID(step.Node); id != "" {
				where = "in loop '" + id + "'"
			}
			w.Steps = append(w.Steps, p.loopStep(step.In(where)))
			continue
		}
		w.Steps = append(w.Steps, p.step(step.In(where), ""))
	}
	return w
}

// sayings reads a list of different short texts.
func (p *parser) sayings(at shape.Place) []string {
	p.Unique(at)
	return p.Texts(at, 1, 256)
}

// version reads the workflow's version.
func (p *parser) version(at shape.Place) string {
	text := p.Text(at, 0, 0)
	if at.Node != nil && at.Node.Kind == doc.String && !isVersion(text) {
		p.Errorf(at, CodeVersion, versionFix(text),
			"Field 'version' %s has the value %s, which is not a semantic version (MAJOR.MINOR.PATCH).", at.Where, shape.Quote(text))
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
		return " (" + shape.Quote(id) + ")"
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
func (p *parser) step(at shape.Place, hint string) Step {
	if at.Node.Kind != doc.Object {
		p.WrongType(at, "an object")
		return Step{}
	}
	p.Closed(at, hint, []string{
		"id", "title", "prompt", "agentRole", "guidance", "askForFiles", "hasValidation", "requireConfirmation", "approval",
		"runCondition", "validationCriteria", "functionDefinitions", "functionCalls", "functionReferences",
	})
	p.Require(at, "id", "title", "prompt")
	confirm, person := p.confirmation(at)
	return Step{
		ID:            p.id(at.Key("id")),
		Title:         p.Text(at.Key("title"), 1, 128),
		Prompt:        p.Text(at.Key("prompt"), 1, 8192),
		AgentRole:     p.Text(at.Key("agentRole"), 10, 1024),
		Guidance:      p.Texts(at.Key("guidance"), 0, 0),
		AskForFiles:   p.Flag(at.Key("askForFiles")),
		HasValidation: p.Flag(at.Key("hasValidation")),
		Confirm:       confirm,
		Person:        person,
		RunCondition:  p.condition(at.Key("runCondition")),
		Criteria:      p.criteria(at.Key("validationCriteria")),
		Functions:     p.functions(at.Key("functionDefinitions")),
		Calls:         p.calls(at.Key("functionCalls")),
		References:    p.references(at.Key("functionReferences")),
		Source: Source{
			Confirm:   p.Source(at.Key("requireConfirmation")),
			Condition: p.Source(at.Key("runCondition")),
			Criteria:  p.Source(at.Key("validationCriteria")),
		},
	}
}
