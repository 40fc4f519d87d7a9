package attest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
)

// Reason is the code of a refusal.
type Reason string

// The reasons for which a file is refused before its content is used.
const (
	ReasonTooLarge      Reason = "file-too-large"
	ReasonTruncated     Reason = "file-truncated"
	ReasonFile          Reason = "file-invalid"
	ReasonDuplicate     Reason = "member-duplicate"
	ReasonPayloadType   Reason = "payload-type-unknown"
	ReasonUnsigned      Reason = "signature-missing"
	ReasonKey           Reason = "key-untrusted"
	ReasonSignature     Reason = "signature-invalid"
	ReasonStatementType Reason = "statement-type-unknown"
	ReasonPredicateType Reason = "predicate-type-unknown"
	ReasonMember        Reason = "member-unknown"
	ReasonPayload       Reason = "payload-invalid"
)

// The reasons for which a statement does not meet requirements.
const (
	ReasonCommit     Reason = "commit-differs"
	ReasonTree       Reason = "tree-differs"
	ReasonWorkflow   Reason = "workflow-differs"
	ReasonDefinition Reason = "definition-differs"
	ReasonApproval   Reason = "approval-missing"
	// ReasonClaim is a step that is a claim where evidence is required. ReasonEvidence is a
	// check that did not run or did not pass, ReasonStale one that saw other files.
	ReasonClaim    Reason = "step-is-claim"
	ReasonEvidence Reason = "evidence-missing"
	ReasonStale    Reason = "evidence-stale"
)

// Refusal explains why a file or a statement is refused.
type Refusal struct {
	Reason  Reason `json:"reason"`
	Message string `json:"message"`
	Fix     string `json:"fix,omitempty"`
}

// Error implements error.
func (r *Refusal) Error() string { return r.Message }

// Unwrap returns an error with a code, for guideway.ErrorCode.
func (r *Refusal) Unwrap() error {
	return &guideway.Error{Code: guideway.CodeRefused, Message: r.Message, Fix: r.Fix}
}

func (r *Refusal) withFix(fix string) *Refusal {
	r.Fix = fix
	return r
}

func refuse(reason Reason, format string, args ...any) *Refusal {
	return &Refusal{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Requirements are conditions on a statement. Empty fields require nothing.
type Requirements struct {
	// Commit and Tree are the expected subject.
	Commit, Tree string
	// Workflow is the id of the workflow, Definition the hash of its definition.
	Workflow, Definition string
	// Approvals are gates that a person must have answered, as GATE or GATE=OPTION.
	Approvals []string
	// Evidence are the ids of steps that must be decided by checks, or names of checks of the
	// project that must have passed for the files of the subject. The last result counts.
	Evidence []string
}

// Check returns the requirements that the statement does not meet. The last checks of the
// run must always have seen the files of the subject.
func (s *Statement) Check(r Requirements) []*Refusal {
	var refusals []*Refusal
	add := func(refusal *Refusal) {
		if refusal != nil && !slices.ContainsFunc(refusals, func(r *Refusal) bool { return *r == *refusal }) {
			refusals = append(refusals, refusal)
		}
	}
	compare := func(reason Reason, what, want, got, fix string) {
		if want != "" && want != got {
			add(refuse(reason, "the statement is about %s %s, not %s", what, got, want).withFix(fix))
		}
	}
	workflow := s.Predicate.Workflow
	compare(ReasonCommit, "the commit", r.Commit, s.Commit(), "use an attestation of the required commit; to create one: guideway runs attest RUN")
	compare(ReasonTree, "the tree", r.Tree, s.Tree(), "use an attestation of the required tree; to create one: guideway runs attest RUN")
	compare(ReasonWorkflow, "the workflow", r.Workflow, workflow.ID, "use an attestation of a run of "+r.Workflow)
	compare(ReasonDefinition, "the definition", r.Definition, workflow.Definition, "repeat the work with the required definition of "+workflow.ID)
	add(s.requireFreshChecks())
	for _, gate := range r.Approvals {
		add(s.requireApproval(gate))
	}
	for _, name := range r.Evidence {
		add(s.requireEvidence(name))
	}
	return refusals
}

// optionRevise is the option of a gate that repeats its step. It approves nothing.
const optionRevise = "revise"

// requireApproval checks the last answer to a gate.
func (s *Statement) requireApproval(requirement string) *Refusal {
	gate, option, _ := strings.Cut(requirement, "=")
	fix := "start a new run, approve the gate as a person (guideway runs approve RUN), and attest the new run"
	for _, a := range slices.Backward(s.Predicate.Approvals) {
		switch {
		case a.Gate != gate:
			continue
		case !a.Person:
			return refuse(ReasonApproval, "the gate %s was answered via %s, which does not prove that a person answered", gate, a.Via).withFix(fix)
		case a.Option == optionRevise:
			return refuse(ReasonApproval, "the answer to the gate %s is %q, which requests changes and approves nothing", gate, a.Option).withFix(fix)
		case option != "" && a.Option != option:
			return refuse(ReasonApproval, "the answer to the gate %s is %q, not the required option %q", gate, a.Option, option).withFix(fix)
		}
		return nil
	}
	return refuse(ReasonApproval, "the attested run has no answer to the gate %s", gate).withFix(fix)
}

// requireEvidence checks the last completion of a step, or the last result of a check.
func (s *Statement) requireEvidence(name string) *Refusal {
	for _, step := range slices.Backward(s.Predicate.Steps) {
		if step.ID == name {
			if step.Label != Evidence {
				return refuse(ReasonClaim, "the step %s is a claim: no check decided it", name).
					withFix("add a check to the criteria of the step (a named one must be in .guideway/checks.yaml), and complete the step in a new run")
			}
			return nil
		}
		for _, check := range slices.Backward(step.Checks) {
			switch {
			case check.Name != name:
				continue
			case check.Undefined:
				return refuse(ReasonClaim, "the step %s is a claim: the project does not define the check %s", step.ID, name).
					withFix("define the check in .guideway/checks.yaml, and complete the step in a new run")
			case !check.Passed:
				return refuse(ReasonEvidence, "the check %s did not pass in the step %s", name, step.ID).
					withFix("correct what the check reports, and complete the step in a new run")
			}
			return s.requireFresh(&check)
		}
	}
	return refuse(ReasonEvidence, "the run has no step %s and no result of a check %s", name, name).
		withFix("name a step of the workflow, or a check that its rules use")
}

// requireFresh checks that a check saw the files of the subject.
func (s *Statement) requireFresh(check *Check) *Refusal {
	got := check.Workspace.Content()
	if got == s.Tree() {
		return nil
	}
	return refuse(ReasonStale, "the check %s saw the tree %s, but the commit has the tree %s", check.Title(), orUnknown(got), s.Tree()).
		withFix("commit the files that the check saw, or run the step with the check again")
}

// requireFreshChecks checks that the last checks of the run saw the files of the subject.
// Earlier checks saw the files of their time.
func (s *Statement) requireFreshChecks() *Refusal {
	for _, step := range slices.Backward(s.Predicate.Steps) {
		if step.Label != Evidence {
			continue
		}
		for i := range step.Checks {
			if check := &step.Checks[i]; check.Decided {
				if refusal := s.requireFresh(check); refusal != nil {
					return refusal
				}
			}
		}
		return nil
	}
	return nil
}

func orUnknown(text string) string {
	if text == "" {
		return "(unknown)"
	}
	return text
}
