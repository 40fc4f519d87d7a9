package phases

import (
	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/lists"
	"github.com/guideway-dev/guideway/internal/workflow/doc"
	"github.com/guideway-dev/guideway/internal/workflow/shape"
)

// Activity maps a goal in a user's words to the skills that serve it. It may have
// additional members; Canonical contains all of them.
type Activity struct {
	ID, Version string
	// Problem is the user's problem that the activity solves.
	Problem string
	// Recognition are phrases by which the goal is recognized.
	Recognition []string
	Skills      ActivitySkills
	// Outcome is the desired result, Flow the steps to it.
	Outcome, Flow []string
	// ContextToPreserve lists the information that must be kept.
	ContextToPreserve []string
	Usage             string
	Notes             []string
	// Guide is the guide to read first, or nil.
	Guide *MandatoryGuide
	// Canonical is the document as RFC 8785 JSON.
	Canonical string
}

// ActivitySkills lists the skills of an activity by id.
type ActivitySkills struct {
	Primary    string
	Supporting []string
}

// MandatoryGuide refers to a guide of a workflow by its index. The original schema has no
// such member, but the original server reads it.
type MandatoryGuide struct {
	WorkflowID, Index string
}

// ParseActivity checks and parses an activity. It reports all errors; the activity
// is nil if there are any.
func ParseActivity(file string, root *doc.Node) (*Activity, []guideway.Diagnostic) {
	p, at := newParser(file), shape.Root(root, "activity")
	if !p.Document(at, "An activity", "write one object with id, version, problem, recognition, skills, outcome and flow") {
		return nil, p.Found
	}
	p.Canonical = doc.Mark(root)
	p.Require(at, "id", "version", "problem", "recognition", "skills", "outcome", "flow")
	a := &Activity{
		ID: p.readID(at.Key("id")), Version: p.readVersion(at.Key("version")), Problem: p.readText(at.Key("problem")),
		Recognition: p.Texts(at.Key("recognition"), 0, 0),
		Outcome:     p.Texts(at.Key("outcome"), 0, 0), Flow: p.Texts(at.Key("flow"), 0, 0),
		ContextToPreserve: p.Texts(at.Key("context_to_preserve"), 0, 0),
		Usage:             p.readText(at.Key("usage")), Notes: p.Texts(at.Key("notes"), 0, 0),
		Guide:     mandatoryGuide(root.Get("mandatory_guide")),
		Canonical: p.Canonical,
	}
	p.NotEmpty(at.Key("recognition"), "add a phrase by which a user's goal is recognized")
	p.NotEmpty(at.Key("outcome"), "describe the result of the activity")
	p.NotEmpty(at.Key("flow"), "describe what to do, step by step")
	if skills, ok := p.openNested(at.Key("skills"), "primary", "supporting"); ok {
		p.Require(skills, "primary")
		a.Skills = ActivitySkills{Primary: p.readID(skills.Key("primary")), Supporting: p.Texts(skills.Key("supporting"), 0, 0)}
	}
	if len(p.Found) > 0 {
		return nil, p.Findings(guideway.SeverityError)
	}
	return a, nil
}

// mandatoryGuide parses a member that no schema describes; it returns nil if it is invalid.
func mandatoryGuide(n *doc.Node) *MandatoryGuide {
	workflow, index := n.Get("workflow_id"), n.Get("index")
	if workflow == nil || index == nil || workflow.Kind != doc.String || index.Kind != doc.String && index.Kind != doc.Number {
		return nil
	}
	return &MandatoryGuide{WorkflowID: workflow.Text, Index: index.Text}
}

// Skill describes how an agent uses tools for a capability. Its documents are open at every
// level; Canonical contains all members.
type Skill struct {
	ID, Version string
	// Capability is what the skill enables an agent to do.
	Capability, Description string
	// Canonical is the document as RFC 8785 JSON.
	Canonical string
}

// ParseSkill checks and parses a skill. It reports all errors; the skill is nil if
// there are any.
func ParseSkill(file string, root *doc.Node) (*Skill, []guideway.Diagnostic) {
	p, at := newParser(file), shape.Root(root, "skill")
	if !p.Document(at, "A skill", "write one object with id, version and capability") {
		return nil, p.Found
	}
	p.Canonical = doc.Mark(root)
	p.Require(at, "id", "version", "capability")
	s := &Skill{
		ID: p.readID(at.Key("id")), Version: p.readVersion(at.Key("version")), Capability: p.readText(at.Key("capability")),
		Description: p.readText(at.Key("description")), Canonical: p.Canonical,
	}
	for _, m := range p.skillMembers() {
		m.read(at.Key(m.key))
	}
	if len(p.Found) > 0 {
		return nil, p.Findings(guideway.SeverityError)
	}
	return s, nil
}

// member is a key of an open object and the function that reads its value.
type member struct {
	key  string
	read func(shape.Place)
}

// skillMembers returns the known members of a skill that are not fields of Skill.
func (p *parser) skillMembers() []member {
	text := func(at shape.Place) { p.readText(at) }
	texts := func(at shape.Place) { p.Texts(at, 0, 0) }
	object := func(at shape.Place) { p.Open(at) }
	of := func(read func(shape.Place), keys ...string) []member {
		return lists.Map(keys, func(key string) member { return member{key, read} })
	}
	words := p.checkMembers(text)
	return []member{
		{"architecture", p.openObject(of(text, "principle", "gap_detection"), of(texts, "layers"))},
		{"execution_pattern", p.openObject(of(texts, "start", "bootstrap", "per_phase", "skill_loading", "discovery", "transitions", "artifacts"))},
		{"tools", p.checkMembers(p.openObject(of(text, "when", "params", "returns", "next", "action", "usage"), of(texts, "preserve")))},
		{"flow", texts},
		{"matching", p.openObject(of(text, "quick_match", "fallback", "ambiguous", "never"))},
		{"state", p.openObject(of(text, "format", "initialize"), of(words, "structure", "update_on"),
			of(object, "checkpoint_response_format", "decision_outcome_format"))},
		{"state_structure", words},
		{"numeric_format", p.openObject(of(text, "description"), of(words, "examples"))},
		{"initialization", p.openObject(of(text, "trigger"), of(object, "state"))},
		{"update_patterns", p.checkMembers(p.openObject(of(text, "trigger"), of(texts, "actions")))},
		{"checkpoint_response_format", object},
		{"decision_outcome_format", object},
		{"history_event_types", p.textsOrObject},
		{"history_entry_format", object},
		{"status_values", words},
		{"interpretation", p.openObject(of(text, "transitions", "checkpoints", "decisions", "loops", "guides", "templates"))},
		{"resumption", p.openObject(of(text, "description", "note"), of(texts, "steps"))},
		{"errors", p.checkMembers(p.openObject(of(text, "cause", "recovery", "detection", "note"), of(texts, "resolution")))},
	}
}

// textsOrObject checks a list of texts or any object.
func (p *parser) textsOrObject(at shape.Place) {
	if at.Node != nil && at.Node.Kind == doc.Array {
		p.Texts(at, 0, 0)
		return
	}
	if at.Node != nil && at.Node.Kind != doc.Object {
		p.WrongType(at, "a list of strings or an object")
	}
}

// openObject checks the known members of an object; others are allowed.
func (p *parser) openObject(groups ...[]member) func(shape.Place) {
	return func(at shape.Place) {
		if !p.Open(at) {
			return
		}
		at = at.In(nestedLocation(at))
		for _, group := range groups {
			for _, m := range group {
				m.read(at.Key(m.key))
			}
		}
	}
}

// checkMembers applies one check to every member of an object.
func (p *parser) checkMembers(read func(shape.Place)) func(shape.Place) {
	return func(at shape.Place) {
		if !p.Open(at) {
			return
		}
		for i := range at.Node.Members {
			value := at.Key(at.Node.Members[i].Key)
			value.Name = at.Name + "." + at.Node.Members[i].Key
			read(value)
		}
	}
}
