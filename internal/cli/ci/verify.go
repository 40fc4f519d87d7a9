package ci

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/evidence/attest"
	"github.com/guideway-dev/guideway/internal/evidence/execute/checkout"
	"github.com/guideway-dev/guideway/internal/evidence/policy"
	"github.com/guideway-dev/guideway/internal/workflow"
)

// maxAttestations is the maximum number of attestations of one change.
const maxAttestations = 50

// Verdict is the result of the verification of a change.
type Verdict string

// The verdicts.
const (
	Passed  Verdict = "passed"
	Refused Verdict = "refused"
	// Undecided is the verdict if the requirements could not be compared with the change.
	Undecided Verdict = "undecided"
)

// The reasons for which a change is refused, in addition to those of package attest.
const (
	ReasonAttestation attest.Reason = "attestation-missing"
	// ReasonCheck is a check that failed on the clean checkout. ReasonNotRepeated is evidence
	// of a rule that cannot be executed again.
	ReasonCheck       attest.Reason = "check-failed"
	ReasonNotRepeated attest.Reason = "evidence-not-repeated"
)

// Report is the result of guideway ci verify.
type Report struct {
	Verdict Verdict `json:"verdict"`
	// Base and Head are commits. Tree is the tree of Head.
	Base string `json:"base,omitempty"`
	Head string `json:"head,omitempty"`
	Tree string `json:"tree,omitempty"`
	// Changed counts the changed paths. Unmatched are those without a rule.
	Changed   int      `json:"changed"`
	Unmatched []string `json:"unmatched"`
	// Needs are the rules that apply to the change.
	Needs        []*Need        `json:"needs"`
	Attestations []*Attestation `json:"attestations"`
	// Checks are the checks that were executed on a clean checkout, or whose host is trusted.
	Checks []*Check `json:"checks"`
	// Problems are the reasons for which the verdict is not known.
	Problems []Problem `json:"problems"`
	Notes    []string  `json:"notes"`
}

// Problem is a reason for which the verdict is not known.
type Problem struct {
	Message string `json:"message"`
	Fix     string `json:"fix,omitempty"`
}

// Need is a rule of the policy that applies to the change.
type Need struct {
	Workflow string   `json:"workflow,omitempty"`
	Paths    []string `json:"paths"`
	// Attestation is the file that meets the rule.
	Attestation string            `json:"attestation,omitempty"`
	Refusals    []*attest.Refusal `json:"refusals"`

	rule       *policy.Rule
	definition string
	meets      *Attestation
}

// Attestation is an attestation of the change.
type Attestation struct {
	File     string            `json:"file"`
	Workflow string            `json:"workflow,omitempty"`
	RunID    string            `json:"runId,omitempty"`
	Keys     []string          `json:"keys"`
	Refusals []*attest.Refusal `json:"refusals"`

	statement *attest.Statement
}

// Predicate returns the content of an attestation that can be used, or else nil.
func (a *Attestation) Predicate() *attest.Predicate {
	if a.statement == nil {
		return nil
	}
	return &a.statement.Predicate
}

// change is a change under verification.
type change struct {
	o          *verifyOptions
	repo       *checkout.Repository
	base, head checkout.Commit
	// ancestor is the common ancestor of the base and the head.
	ancestor checkout.Commit
	policy   *policy.Policy
	keys     []attest.PublicKey
	// hosts are the trusted hosts by the id of their key.
	hosts  map[string][]string
	report *Report
}

// verify verifies the change between the base and the head of the repository.
func (o *verifyOptions) verify(ctx context.Context) *Report {
	c := &change{o: o, hosts: map[string][]string{}, report: &Report{
		Unmatched: []string{}, Needs: []*Need{}, Attestations: []*Attestation{}, Checks: []*Check{}, Problems: []Problem{}, Notes: []string{},
	}}
	if err := c.decide(ctx); err != nil {
		c.addProblem(err)
	}
	c.report.Verdict = c.report.decide()
	return c.report
}

func (c *change) addProblem(err error) {
	c.report.Problems = append(c.report.Problems, Problem{Message: err.Error(), Fix: guideway.ErrorFix(err)})
}

// decide returns the verdict. A refusal takes precedence over a problem.
func (r *Report) decide() Verdict {
	failed := func(check *Check) bool { return check.State == StateFailed }
	refused := func(need *Need) bool { return len(need.Refusals) > 0 }
	switch {
	case slices.ContainsFunc(r.Needs, refused), slices.ContainsFunc(r.Checks, failed):
		return Refused
	case len(r.Problems) > 0:
		return Undecided
	}
	return Passed
}

// decide fills in the report, except for the verdict. The caller adds the error to the
// problems.
func (c *change) decide(ctx context.Context) (err error) {
	if c.repo, err = checkout.Open(c.o.app.Host.Dir); err != nil {
		return err
	}
	if c.base, err = c.repo.Find(ctx, c.o.Base); err != nil {
		return err
	}
	if c.head, err = c.repo.Find(ctx, "HEAD"); err != nil {
		return err
	}
	c.report.Base, c.report.Head, c.report.Tree = c.base.ID, c.head.ID, c.head.Tree
	ancestor, err := c.repo.MergeBase(ctx, c.base.ID, c.head.ID)
	if err != nil {
		return err
	}
	if c.ancestor, err = c.repo.Find(ctx, ancestor); err != nil {
		return err
	}
	changed, err := c.repo.ChangedPaths(ctx, ancestor, c.head.ID)
	if err != nil {
		return err
	}
	files := slices.DeleteFunc(slices.Clone(changed), func(p string) bool { return !attest.IsFile(p) })
	changed = slices.DeleteFunc(changed, attest.IsFile)
	c.report.Changed = len(changed)
	if err := c.readPolicy(ctx); err != nil {
		return err
	}
	needs, unmatched := c.policy.Apply(changed)
	c.report.Unmatched = append(c.report.Unmatched, unmatched...)
	for _, n := range needs {
		c.report.Needs = append(c.report.Needs, &Need{Workflow: n.Rule.Workflow, Paths: n.Paths, Refusals: []*attest.Refusal{}, rule: n.Rule})
	}
	if !slices.ContainsFunc(c.report.Needs, func(n *Need) bool { return n.Workflow != "" }) {
		return nil
	}
	if len(c.keys) == 0 {
		return guideway.Errorf(guideway.CodeInvalid, "no key is trusted, so no attestation can be verified").
			WithFix(`add the file of a public key to "keys" in %s, in a reviewed commit of the base, or name the file with --key`, cmp.Or(c.o.Policy, policy.Path))
	}
	if err := c.readAttestations(ctx, files); err != nil {
		return err
	}
	for _, need := range c.report.Needs {
		if err := c.judge(ctx, need); err != nil {
			return err
		}
	}
	return c.repeatChecks(ctx)
}

// readPolicy reads the policy and its keys from the base, whose content was reviewed. A
// change therefore cannot exempt itself.
func (c *change) readPolicy(ctx context.Context) error {
	name, text, err := c.o.Policy, []byte(nil), error(nil)
	if name != "" {
		text, err = c.o.app.Host.ReadInput(ctx, name, policy.MaxBytes)
	} else {
		name = policy.Path
		text, err = c.repo.ReadFile(ctx, c.base.ID, name)
	}
	if errors.Is(err, checkout.ErrUnknown) {
		return guideway.Errorf(guideway.CodeNotFound, "the base %s has no file %s", c.o.Base, policy.Path).WithFix("add the file in a reviewed commit of the base, or name a policy file with --policy")
	}
	if err != nil {
		return err
	}
	parsed, found := policy.Parse(name, text)
	if parsed == nil {
		first := found[max(0, slices.IndexFunc(found, func(d guideway.Diagnostic) bool { return d.Severity == guideway.SeverityError }))]
		return guideway.Errorf(guideway.CodeInvalid, "the policy %s cannot be used: line %d: %s", name, max(first.Line, 1), first.Message).WithFix("%s", first.Fix)
	}
	c.policy = parsed
	if c.keys, err = c.o.readKeys(ctx); err != nil {
		return err
	}
	for _, key := range parsed.Keys {
		text, err := c.repo.ReadFile(ctx, c.base.ID, key.File)
		if err != nil {
			return err
		}
		keys, err := attest.ParsePublicKeys(key.File, text)
		if err != nil {
			return err
		}
		for _, k := range keys {
			c.keys = append(c.keys, k)
			if key.Host != "" {
				c.hosts[k.ID()] = append(c.hosts[k.ID()], key.Host)
			}
		}
	}
	return nil
}

// readAttestations reads the attestations that the change adds, and those of the command
// line.
func (c *change) readAttestations(ctx context.Context, files []string) error {
	if n := len(files) + len(c.o.Attestations); n > maxAttestations {
		return guideway.Errorf(guideway.CodeTooLarge, "%d files with attestations are added, edited or removed by the change, or given with --attestation; at most %d are allowed", n, maxAttestations).
			WithFix("split the change, or remove the attestations of other changes")
	}
	for _, name := range files {
		text, err := c.repo.ReadFile(ctx, c.head.ID, name)
		if errors.Is(err, checkout.ErrUnknown) {
			continue // the change removes the file
		}
		if err != nil {
			return err
		}
		if err := c.addAttestation(ctx, name, text); err != nil {
			return err
		}
	}
	for _, name := range c.o.Attestations {
		text, err := c.o.app.Host.ReadInput(ctx, name, attest.MaxFile)
		if err != nil {
			return err
		}
		if err := c.addAttestation(ctx, name, text); err != nil {
			return err
		}
	}
	return nil
}

// addAttestation verifies the signature and the subject of an attestation.
func (c *change) addAttestation(ctx context.Context, name string, text []byte) error {
	a := &Attestation{File: name, Keys: []string{}, Refusals: []*attest.Refusal{}}
	c.report.Attestations = append(c.report.Attestations, a)
	s, signedBy, err := attest.Open(text, c.keys)
	var refusal *attest.Refusal
	if errors.As(err, &refusal) {
		a.Refusals = append(a.Refusals, refusal)
		return nil
	}
	a.statement, a.Keys, a.Workflow, a.RunID = s, signedBy, s.Predicate.Workflow.ID, s.Predicate.Run.ID
	need := attest.Requirements{Tree: s.Tree()}
	switch same, err := c.isSubject(ctx, s.Tree()); {
	case err != nil:
		return err
	case !same:
		need.Tree = c.head.Tree
	}
	a.Refusals = append(a.Refusals, s.Check(need)...)
	return nil
}

// isSubject reports whether a tree equals the one of the head except for attestations.
func (c *change) isSubject(ctx context.Context, tree string) (bool, error) {
	differing, err := c.repo.ChangedPaths(ctx, tree, c.head.Tree)
	if errors.Is(err, checkout.ErrUnknown) {
		return false, nil
	}
	return err == nil && !slices.ContainsFunc(differing, func(p string) bool { return !attest.IsFile(p) }), err
}

// judge looks for an attestation that meets a rule.
func (c *change) judge(ctx context.Context, need *Need) error {
	if need.Workflow == "" {
		return nil
	}
	r := need.rule
	need.definition = r.Definition
	if r.Definition != "" && !r.HasDefinitionHash() {
		text, err := c.repo.ReadFile(ctx, c.base.ID, r.Definition)
		if err != nil {
			return err
		}
		if need.definition, err = hashDefinition(r.Definition, text); err != nil {
			return err
		}
	}
	// If no attestation meets the rule, the reasons are those of the best one.
	var best []*attest.Refusal
	for _, a := range c.report.Attestations {
		refusals := a.Refusals
		if a.statement != nil && a.Workflow != r.Workflow {
			continue
		}
		if a.statement != nil && len(refusals) == 0 {
			refusals = a.statement.Check(attest.Requirements{Workflow: r.Workflow, Definition: need.definition, Approvals: r.Approvals, Evidence: r.Evidence})
		}
		if len(refusals) == 0 {
			need.Attestation, need.meets = a.File, a
			return nil
		}
		if best == nil || a.statement != nil && len(refusals) < len(best) {
			best = refusals
		}
	}
	if need.Refusals = best; best == nil {
		need.Refusals = []*attest.Refusal{{
			Reason: ReasonAttestation, Message: fmt.Sprintf("no attestation is about a run of the workflow %s for this change", r.Workflow),
			Fix: "guideway runs attest RUN --out " + attest.Directory + "/NAME.json, and commit the file",
		}}
	}
	return nil
}

// hashDefinition returns the hash of a definition of the base.
func hashDefinition(name string, text []byte) (string, error) {
	def, found := workflow.Check(name, text)
	if def == nil {
		return "", guideway.Errorf(guideway.CodeInvalid, "the definition %s of the base cannot be used: %s", name, found[0].Message).
			WithFix("correct the definition in a reviewed commit of the base; guideway validate %s prints all errors of the file", name)
	}
	return def.Hash, nil
}
