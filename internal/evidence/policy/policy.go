// Package policy reads the policy of a repository, which maps changed paths to the workflow
// that a change of them needs.
package policy

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/workflow/criteria"
	"github.com/guideway-dev/guideway/internal/workflow/doc"
	"github.com/guideway-dev/guideway/internal/workflow/shape"
)

// Path is the path of the policy in a repository.
const Path = ".guideway/policy.yaml"

// MaxBytes is the maximum size of a policy.
const MaxBytes = 256 << 10

// The codes of diagnostics in addition to those of package shape.
const (
	CodeGlob       = "policy-glob"
	CodePath       = "policy-path"
	CodeDefinition = "policy-definition"
	// CodeUnneeded reports a requirement of a rule without a workflow.
	CodeUnneeded = "policy-workflow-missing"
)

// The limits of lists and texts.
const (
	maxEntries = 200
	maxText    = 1000
)

// Policy is the policy of a repository.
type Policy struct {
	// Rules are the rules in order. The first rule that matches a path applies to it.
	Rules []Rule
	// Keys are the trusted keys.
	Keys []Key
	// Prepare are checks of the project that are executed first in a clean checkout, such as
	// one that installs dependencies.
	Prepare []string
}

// Rule is the requirement on a change of some paths. Without a workflow, nothing is required.
type Rule struct {
	// Paths are globs.
	Paths []string
	// Workflow is the id of the workflow of which a run is required. Definition is its hash,
	// "sha256:…", or the path of its file in the repository; "" allows every definition.
	Workflow, Definition string
	// Evidence are the checks that must have passed, and the steps that checks must have
	// decided. Approvals are the gates that a person must have approved, as GATE or
	// GATE=OPTION.
	Evidence, Approvals []string
	// ChangedChecks allows a change of the files that define the checks of the rule.
	ChangedChecks bool
}

// Key is a trusted key.
type Key struct {
	// File is the path of the public key in the repository.
	File string
	// Host is the host on which the key is kept. The results of checks on this host count
	// without being repeated. "" means that no results count.
	Host string
}

// definitionHash is the form of the hash of a definition.
var definitionHash = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^sha256:[0-9a-f]{64}$`) })

// HasDefinitionHash reports whether the definition of the rule is a hash.
func (r *Rule) HasDefinitionHash() bool { return definitionHash().MatchString(r.Definition) }

// parser collects the diagnostics of one policy.
type parser struct{ shape.Report }

// Parse parses a policy. The policy is nil if there are errors.
func Parse(name string, data []byte) (*Policy, []guideway.Diagnostic) {
	root, found := doc.Parse(name, data, doc.Limits{MaxBytes: MaxBytes})
	if root == nil {
		return nil, found
	}
	p := &parser{shape.Report{File: name, Dialect: shape.Dialect{Name: "policy", Sample: sampleValue}, Found: found}}
	p.Canonical = doc.Mark(root)
	at, policy := shape.Root(root, "policy"), &Policy{}
	p.LintHidden(at)
	if p.Document(at, "A policy", `write "rules:" and the rules below it`) {
		p.Object(at, "keys", "prepare", "rules")
		p.Require(at, "rules")
		policy.Keys = shape.Entries(&p.Report, at.Key("keys"), "keys", func(_ shape.Place, i int) string { return shape.Entry("key", i, "") }, p.readKey)
		policy.Rules = shape.Entries(&p.Report, at.Key("rules"), "rules", func(_ shape.Place, i int) string { return shape.Entry("rule", i, "") }, p.readRule)
		p.NotEmpty(at.Key("rules"), "add a rule")
		policy.Prepare = p.readTexts(at.Key("prepare"))
	}
	findings := p.Findings(guideway.SeverityError)
	if slices.ContainsFunc(findings, func(d guideway.Diagnostic) bool { return d.Severity == guideway.SeverityError }) {
		return nil, findings
	}
	return policy, findings
}

// sampleValue returns an example value of a required member.
func sampleValue(key string) string {
	return map[string]string{"rules": "[...]", "paths": `["src/**"]`, "file": ".guideway/keys/laptop.pub"}[key]
}

func (p *parser) readKey(at shape.Place) Key {
	p.Object(at, "file", "host")
	p.Require(at, "file")
	return Key{File: p.readPath(at.Key("file")), Host: p.Text(at.Key("host"), 1, maxText)}
}

func (p *parser) readRule(at shape.Place) Rule {
	p.Object(at, "paths", "workflow", "definition", "evidence", "approvals", "changedChecks")
	p.Require(at, "paths")
	r := Rule{
		Paths: p.readTexts(at.Key("paths")), Workflow: p.Text(at.Key("workflow"), 1, maxText), Definition: p.Text(at.Key("definition"), 1, maxText),
		Evidence: p.readTexts(at.Key("evidence")), Approvals: p.readTexts(at.Key("approvals")), ChangedChecks: p.Flag(at.Key("changedChecks")),
	}
	p.NotEmpty(at.Key("paths"), `name the paths, such as ["src/**"]`)
	for i, glob := range r.Paths {
		if !doublestar.ValidatePattern(glob) {
			p.Errorf(at.Key("paths").Index(i), CodeGlob, "close every bracket and brace", "The glob %s %s is invalid.", shape.Quote(glob), at.Where)
		}
	}
	if r.Definition != "" && !r.HasDefinitionHash() && !criteria.IsBelow(r.Definition) {
		p.Errorf(at.Key("definition"), CodeDefinition, `write "sha256:" and 64 lowercase hexadecimal digits, or a path from the top of the repository, with slashes and without "..", such as .guideway/workflows/release.yaml`, "Field 'definition' %s is %s, which is neither a hash nor a relative path in the repository.", at.Where, shape.Quote(r.Definition))
	}
	for _, key := range []string{"definition", "evidence", "approvals", "changedChecks"} {
		if need := at.Key(key); need.Node != nil && at.Key("workflow").Node == nil {
			p.Errorf(need, CodeUnneeded, `add "workflow", whose run has the evidence and the approvals`, "Field '%s' %s has no effect without a workflow.", key, at.Where)
		}
	}
	return r
}

// readTexts reads a list of texts that are not empty.
func (p *parser) readTexts(at shape.Place) []string {
	if !p.Array(at, "a list of strings") {
		return nil
	}
	if n := len(at.Node.Items); n > maxEntries {
		p.Errorf(at, shape.CodeRange, "shorten the list", "Field '%s' %s has %d elements; at most %d are allowed.", at.Name, at.Where, n, maxEntries)
	}
	return p.Texts(at, 1, maxText)
}

// readPath reads a path in the repository.
func (p *parser) readPath(at shape.Place) string {
	text := p.Text(at, 1, maxText)
	if text != "" && !criteria.IsBelow(text) {
		p.Errorf(at, CodePath, `use a path in the repository, with slashes and without ".."`, "Field '%s' %s has the path %s, which leaves the repository.", at.Name, at.Where, shape.Quote(text))
	}
	return text
}

// Need is a rule that applies to a change.
type Need struct {
	Rule *Rule
	// Paths are the changed paths that the rule matches.
	Paths []string
}

// Apply returns the rules that apply to changed paths, in the order of the policy, and the
// paths that no rule matches. The paths are sorted.
func (p *Policy) Apply(paths []string) (needs []Need, unmatched []string) {
	matched := map[int][]string{}
	for _, path := range paths {
		i := slices.IndexFunc(p.Rules, func(r Rule) bool { return r.matches(path) })
		if i < 0 {
			unmatched = append(unmatched, path)
			continue
		}
		matched[i] = append(matched[i], path)
	}
	for i := range p.Rules {
		if len(matched[i]) > 0 {
			needs = append(needs, Need{Rule: &p.Rules[i], Paths: matched[i]})
		}
	}
	return needs, unmatched
}

func (r *Rule) matches(path string) bool {
	return slices.ContainsFunc(r.Paths, func(glob string) bool {
		return doublestar.MatchUnvalidated(strings.TrimPrefix(glob, "/"), path)
	})
}
