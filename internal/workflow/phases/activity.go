package phases

import (
	"github.com/guideway-dev/guideway"
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
