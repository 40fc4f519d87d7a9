package steps

import (
	"bytes"
	_ "embed"
	"fmt"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/workflow/criteria"
	"github.com/guideway-dev/guideway/internal/workflow/doc"
	"github.com/guideway-dev/guideway/internal/workflow/rules"
	"github.com/guideway-dev/guideway/internal/workflow/shape"
	"github.com/guideway-dev/guideway/internal/workflow/toolpolicy"
)

// Parse validates and reads a document of the steps dialect. It returns all errors in
// document order; the workflow is nil if there are any.
func Parse(file string, root *doc.Node) (*Workflow, []guideway.Diagnostic) {
	p, at := newParser(file), shape.Root(root, "workflow")
	if !p.Document(at, "A workflow", "write one object with id, name, description, version and steps") {
		return nil, p.Found
	}
	p.Canonical = doc.Mark(root)
	w := p.readWorkflow(at)
	w.Canonical = p.Canonical
	p.checkStructure(at, w)
	if len(p.Found) > 0 {
		p.criteria.ReportDeepErrors()
		return nil, p.Findings(guideway.SeverityError)
	}
	p.resolveBodies(at.Key("steps"), w)
	return w, nil
}

// readWorkflow reads the root.
func (p *parser) readWorkflow(at shape.Place) *Workflow {
	p.Object(at, "id", "name", "description", "version", "preconditions", "clarificationPrompts",
		"metaGuidance", "functionDefinitions", "contextRules", "steps")
	p.Require(at, "id", "name", "description", "version", "steps")
	w := &Workflow{
		ID:                   p.readID(at.Key("id")),
		Name:                 p.Text(at.Key("name"), 1, 128),
		Description:          p.Text(at.Key("description"), 1, 512),
		Version:              p.readVersion(at.Key("version")),
		Preconditions:        p.readShortTexts(at.Key("preconditions")),
		ClarificationPrompts: p.readShortTexts(at.Key("clarificationPrompts")),
		MetaGuidance:         p.readShortTexts(at.Key("metaGuidance")),
		Functions:            p.readFunctions(at.Key("functionDefinitions")),
		ContextRules:         p.ContextRules(at.Key("contextRules")),
	}
	p.Unique(at.Key("functionDefinitions"))
	steps := at.Key("steps")
	if !p.Array(steps, "a list of steps") {
		return w
	}
	if len(steps.Node.Items) == 0 {
		p.Errorf(steps, shape.CodeEmptyList, "add a step with id, title and prompt", "Field 'steps' %s is empty: a workflow has at least one step.", at.Where)
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
			w.Steps = append(w.Steps, p.readLoopStep(step.In(where)))
			continue
		}
		w.Steps = append(w.Steps, p.readStep(step.In(where), ""))
	}
	return w
}

// readShortTexts reads a list of unique short texts.
func (p *parser) readShortTexts(at shape.Place) []string {
	p.Unique(at)
	return p.Texts(at, 1, 256)
}

// readVersion reads the workflow's version.
func (p *parser) readVersion(at shape.Place) string {
	text := p.Text(at, 0, 0)
	if at.Node != nil && at.Node.Kind == doc.String && !isVersion(text) {
		p.Errorf(at, CodeVersion, versionFix(text),
			"Field 'version' %s has the value %s, which is not a semantic version (MAJOR.MINOR.PATCH).", at.Where, shape.Quote(text))
	}
	return text
}

// versionFix returns the fix for an invalid version; each line is a suggestion.
func versionFix(text string) string {
	fix := "use three numbers: MAJOR.MINOR.PATCH, such as 1.0.0 or 0.1.0"
	if better := shape.SimilarVersion(text, isVersion); better != "" {
		return fix + "\nwrite '" + better + "'"
	}
	return fix + "\nwrite a pre-release after a hyphen and build metadata after a plus sign: 1.0.0-alpha.1, 1.0.0+42"
}

// stepID returns the ID of an unvalidated step.
func stepID(n *doc.Node) string {
	if id := n.Get("id"); id != nil && id.Kind == doc.String {
		return id.Text
	}
	return ""
}

// idSuffix returns the quoted ID of a step for a message, or "".
func idSuffix(n *doc.Node) string {
	if id := stepID(n); id != "" {
		return " (" + shape.Quote(id) + ")"
	}
	return ""
}

// isLoop reports whether a step is intended to be a loop: by its type, or else by a member
// that only loops have. This makes diagnostics about an invalid loop refer to it as a loop.
func isLoop(n *doc.Node) bool {
	if kind := n.Get("type"); kind != nil && kind.Kind == doc.String && kind.Text == "loop" {
		return true
	}
	return n.Get("loop") != nil || n.Get("body") != nil
}

// readStep reads a standard step. hint, if it is not empty, is the fix for unknown members.
func (p *parser) readStep(at shape.Place, hint string) Step {
	if at.Node.Kind != doc.Object {
		p.WrongType(at, "an object")
		return Step{}
	}
	p.Closed(at, hint, []string{
		"id", "title", "prompt", "agentRole", "guidance", "askForFiles", "hasValidation", "requireConfirmation", "approval",
		"runCondition", "validationCriteria", "functionDefinitions", "functionCalls", "functionReferences",
		"tools",
	})
	p.Require(at, "id", "title", "prompt")
	confirm, person, approval := p.readConfirmation(at)
	return Step{
		ID:            p.readID(at.Key("id")),
		Title:         p.Text(at.Key("title"), 1, 128),
		Prompt:        p.Text(at.Key("prompt"), 1, 8192),
		AgentRole:     p.Text(at.Key("agentRole"), 10, 1024),
		Guidance:      p.Texts(at.Key("guidance"), 0, 0),
		AskForFiles:   p.Flag(at.Key("askForFiles")),
		HasValidation: p.Flag(at.Key("hasValidation")),
		Confirm:       confirm,
		Person:        person,
		Approval:      approval,
		RunCondition:  p.readCondition(at.Key("runCondition")),
		Criteria:      p.readCriteria(at.Key("validationCriteria")),
		Functions:     p.readFunctions(at.Key("functionDefinitions")),
		Calls:         p.readCalls(at.Key("functionCalls")),
		References:    p.readReferences(at.Key("functionReferences")),
		Tools:         toolpolicy.Read(&p.Report, at.Key("tools")),
		Source: Source{
			Confirm:   p.Source(at.Key("requireConfirmation")),
			Condition: p.Source(at.Key("runCondition")),
			Criteria:  p.Source(at.Key("validationCriteria")),
		},
	}
}

// The codes of rules that the published schema also checks, in addition to the codes of
// package shape.
const (
	CodeVersion       = "version-format"
	CodeLoopType      = "loop-type"
	CodeLoopMax       = "loop-max-iterations"
	CodeLoopCondition = "loop-condition-missing"
	CodeLoopCount     = "loop-count"
	CodeLoopItems     = "loop-items"
	CodeNested        = "loop-nested"
)

// The codes of rules that a schema cannot express.
const (
	CodeDuplicateID     = "step-id-duplicate"
	CodeBodyMissing     = "loop-body-missing"
	CodeBodyIsLoop      = "loop-body-is-loop"
	CodeBodyCondition   = "loop-body-condition"
	CodeVariableEmpty   = "loop-variable-empty"
	CodeFunctionUnknown = "function-unknown"
	CodeArgumentMissing = "function-argument-missing"
	CodeArgumentType    = "function-argument-type"
	CodeArgumentValue   = "function-argument-value"
)

//go:embed schema.json
var schemaText []byte

// Schema returns the published JSON Schema (draft-07) of the dialect. It accepts the same
// documents as Parse, except for rules that a schema cannot express.
func Schema() []byte { return bytes.Clone(schemaText) }

// parser collects the diagnostics of one document.
type parser struct {
	shape.Report
	criteria rules.Reader
}

// newParser returns a parser for a document of a file.
func newParser(file string) parser {
	return parser{Report: shape.Report{File: file, Dialect: shape.Dialect{
		Name: "steps", Aliases: otherNames, Sample: sampleValue, Empty: emptyFix, TooLong: tooLongFix,
	}}}
}

// sampleValue returns an example value of a required member.
func sampleValue(key string) string {
	switch key {
	case "version":
		return `"0.1.0"`
	case "id":
		return `"an-id"`
	case "steps", "body":
		return "[...]"
	case "argv", "paths":
		return `["..."]`
	case "loop", "args":
		return "{...}"
	case "maxIterations":
		return "10"
	default:
		return ""
	}
}

// emptyFix returns the fix for an empty text.
func emptyFix(name string) string {
	if name == "agentRole" {
		return "enter a value, or remove the field"
	}
	return ""
}

// tooLongFix returns the fix for a text that is too long.
func tooLongFix(name string) string {
	switch {
	case name == "prompt":
		return "split the step in two, or move text that is not needed immediately into another step"
	case strings.HasPrefix(name, "metaGuidance"):
		return "split the text into several entries"
	default:
		return ""
	}
}

// readCriteria reads the criteria of a step.
func (p *parser) readCriteria(at shape.Place) *criteria.Criterion {
	p.criteria.Report, p.criteria.CheckCondition = &p.Report, func(when shape.Place) { p.checkCondition(when) }
	return p.criteria.Read(at)
}

// readID reads a member that is the ID of a workflow or step.
func (p *parser) readID(at shape.Place) string {
	text := p.Text(at, 3, 64)
	if at.Node != nil && at.Node.Kind == doc.String && text != "" && !isID(text) {
		fix := "use only lower-case letters, digits and hyphens"
		if better := toID(text); len(better) >= 3 {
			fix = fmt.Sprintf("write '%s'", better)
		}
		p.Errorf(at, shape.CodePattern, fix, "Field '%s' %s has the value %s; an id consists of lower-case letters, digits and hyphens.", at.Name, at.Where, shape.Quote(text))
	}
	return text
}

// readIdentifier reads a member that names a variable or function.
func (p *parser) readIdentifier(at shape.Place) string {
	if at.Node == nil {
		return ""
	}
	text := p.Text(at, 0, 0)
	if at.Node.Kind == doc.String && !shape.IsIdentifier(text) {
		p.Errorf(at, shape.CodePattern, "use letters, digits and underscores, and do not start with a digit", "Field '%s' %s has the value %s, which is not a valid name.", at.Name, at.Where, shape.Quote(text))
	}
	return text
}
