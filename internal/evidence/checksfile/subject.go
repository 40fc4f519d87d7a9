package checksfile

import (
	"cmp"
	"encoding/json"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/hooks/approval"
	"github.com/guideway-dev/guideway/internal/platform/digest"
	"github.com/guideway-dev/guideway/internal/platform/jsontext"
	"github.com/guideway-dev/guideway/internal/workflow/criteria"
	"github.com/guideway-dev/guideway/internal/workflow/doc"
)

// Subject is what a person approves before a check is executed: a check of the project, or a
// rule of a workflow, with the files of the workspace that define its command.
type Subject struct {
	// Root is the workspace, with symbolic links resolved.
	Root string
	// Name is the name of the check, or TYPE:HASH for a rule of a workflow.
	Name string
	// Description is the description of the check.
	Description string
	// Rule is the rule that is executed, with placeholders.
	Rule *criteria.CheckRule
	// Check is the check of the project; nil for a rule of a workflow.
	Check *Check
	// Files are the files that define the command, sorted by path.
	Files []DefiningFile
	// Hash is the hash of the definition and of the files.
	Hash string
}

// State is the state of the approval of a subject.
type State string

// The states of approvals.
const (
	StateApproved State = "approved"
	// StateChanged is a subject that changed after its approval.
	StateChanged State = "changed"
	StateWaiting State = "waiting"
)

// NewSubject returns the subject of a check of the project.
func NewSubject(root string, c *Check) (*Subject, error) {
	s := &Subject{Name: c.Name, Description: c.Description, Rule: &c.Command, Check: c}
	return s, s.complete(root, c.definition, c.Files)
}

// NewRuleSubject returns the subject of a rule of a workflow, or nil if its type needs no
// approval. If the URL of the filled rule has a loopback address, that address needs an
// approval.
func NewRuleSubject(root string, template, filled *criteria.CheckRule) (*Subject, error) {
	rule := template
	switch template.Type {
	case criteria.Command, criteria.Tool:
	case criteria.HTTP:
		address, ok := LoopbackAddress(filled.URL)
		if !ok {
			return nil, nil
		}
		rule = &criteria.CheckRule{Type: criteria.HTTP, URL: address}
	default:
		return nil, nil
	}
	text, err := canonicalRule(rule)
	if err != nil {
		return nil, err
	}
	s := &Subject{Name: string(rule.Type) + ":" + digest.Hex(text)[:12], Rule: rule}
	return s, s.complete(root, text, nil)
}

// canonicalRule returns the canonical form of a rule.
func canonicalRule(rule *criteria.CheckRule) (string, error) {
	text, err := jsontext.Marshal(rule)
	if err != nil {
		return "", guideway.Errorf(guideway.CodeInternal, "write a rule: %w", err)
	}
	node, found := doc.Parse("rule.json", text, doc.Limits{})
	if len(found) > 0 {
		return "", guideway.Errorf(guideway.CodeInvalidDefinition, "the rule cannot be approved: %s", found[0].Message).WithFix("%s", found[0].Fix)
	}
	return string(doc.Canonical(node)), nil
}

// LoopbackAddress returns the scheme, the host and the port of a URL of this machine. ok is
// false for any other URL.
func LoopbackAddress(text string) (address string, ok bool) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return "", false
	}
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	ip, err := netip.ParseAddr(host)
	if host != "localhost" && !strings.HasSuffix(host, ".localhost") && (err != nil || !ip.Unmap().IsLoopback()) {
		return "", false
	}
	port := cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	return u.Scheme + "://" + net.JoinHostPort(host, port), true
}

// complete reads the files that define the command and computes the hash.
func (s *Subject) complete(root, definition string, listed []string) error {
	resolved, err := filepath.EvalSymlinks(root)
	if err != nil {
		return guideway.Errorf(guideway.CodeUnavailable, "the workspace %s cannot be read: %w", root, err).WithFix("check that the directory exists on this computer, and that this user can read it")
	}
	s.Root = resolved
	if s.Rule.Type == criteria.Command {
		if s.Files, err = readDefiningFiles(resolved, s.Rule, listed); err != nil {
			return err
		}
	}
	hashed := []string{"guideway check 1", definition}
	for _, f := range s.Files {
		hashed = append(hashed, f.Path, f.Hash)
	}
	text, err := json.Marshal(hashed)
	if err != nil {
		return guideway.Errorf(guideway.CodeInternal, "hash a check: %w", err)
	}
	s.Hash = digest.Hex(string(text))
	return nil
}

// Key returns the key of the approval of the subject.
func (s *Subject) Key() approval.Key {
	return approval.Key{Kind: approval.KindCheck, Source: s.Root, Subject: s.Name}
}

// approvedScope is the scope of the record of a subject.
type approvedScope struct {
	// Text is the text that the person approved, as Text returns it.
	Text string `json:"text"`
}

// Record returns the approval of the subject by a person.
func (s *Subject) Record(who string) (approval.Record, error) {
	scope, err := json.Marshal(approvedScope{Text: s.Text(keptBytes)})
	if err != nil {
		return approval.Record{}, guideway.Errorf(guideway.CodeInternal, "write an approval: %w", err)
	}
	k := s.Key()
	return approval.Record{Kind: k.Kind, Source: k.Source, Subject: k.Subject, Hash: s.Hash, Who: who, Scope: scope}, nil
}

// State returns the state of the subject's approval.
func (s *Subject) State(approved approval.Records) State {
	switch r := approved.Find(s.Key()); {
	case r == nil:
		return StateWaiting
	case s.Hash != "" && r.Hash == s.Hash:
		return StateApproved
	default:
		return StateChanged
	}
}

// CheckApproved returns an error with a fix if exactly this content was not approved.
func (s *Subject) CheckApproved(approved approval.Records) error {
	switch s.State(approved) {
	case StateApproved:
		return nil
	case StateChanged:
		what := s.describe()
		if len(s.Files) > 0 {
			what += ", or a file that defines it,"
		}
		return guideway.Errorf(guideway.CodeForbidden, "%s changed after its approval", what).
			WithFix("ask a person to review and approve the change in a terminal in %s: guideway checks approve %s", s.Root, s.Name)
	default:
		return guideway.Errorf(guideway.CodeForbidden, "%s is not approved", s.describe()).
			WithFix("ask a person to review and approve %s in a terminal in %s: guideway checks approve %s", s.describe(), s.Root, s.Name)
	}
}

// describe describes the subject in an error.
func (s *Subject) describe() string {
	switch {
	case s.Check != nil:
		return "the check " + s.Name
	case s.Rule.Type == criteria.HTTP:
		return "the loopback address " + s.Rule.URL
	case s.Rule.Type == criteria.Tool:
		return "the tool " + s.Rule.Tool + " of a rule"
	default:
		return "the command `" + strings.Join(s.Rule.Argv, " ") + "` of a rule"
	}
}

// Resolution is the command, address or tool of one rule.
type Resolution struct {
	// Rule is the rule to execute with all values filled in; its type is never
	// criteria.NamedCheck.
	Rule *criteria.CheckRule
	// Check is the check of the project that the rule names; nil for other types.
	Check *Check
	// Subject is what must be approved; nil if the rule needs no approval.
	Subject *Subject
}

// Resolve returns what a rule executes in a workspace. template is the rule of the
// definition, and filled the rule with the variables of the run. It returns nil if the rule
// names a check that the project does not define. A check that was approved and is no longer
// defined is an error, because it must not become a claim unnoticed.
func Resolve(root string, template, filled *criteria.CheckRule, approved approval.Records) (*Resolution, error) {
	if template.Type != criteria.NamedCheck {
		subject, err := NewRuleSubject(root, template, filled)
		return &Resolution{Rule: filled, Subject: subject}, err
	}
	c, err := Load(root).Find(template.Check)
	if err != nil {
		return nil, err
	}
	if c == nil {
		return nil, checkRemoved(root, template.Check, approved)
	}
	subject, err := NewSubject(root, c)
	if err != nil {
		return nil, err
	}
	rule, err := c.FillParameters(filled.With)
	return &Resolution{Rule: rule, Check: c, Subject: subject}, err
}

// checkRemoved returns an error if an undefined check was approved.
func checkRemoved(root, name string, approved approval.Records) error {
	if resolved, err := filepath.EvalSymlinks(root); err == nil {
		root = resolved
	}
	if approved.Find(approval.Key{Kind: approval.KindCheck, Source: root, Subject: name}) == nil {
		return nil
	}
	return guideway.Errorf(guideway.CodeForbidden, "the check %s was approved, but %s no longer defines it", name, Path).
		WithFix("restore the check, or ask a person to confirm the removal in a terminal in %s: guideway checks approve %s", root, name)
}

// Removed returns the names of the approved checks of a workspace that the file no longer
// defines, sorted.
func (f *File) Removed(root string, approved approval.Records) []string {
	if resolved, err := filepath.EvalSymlinks(root); err == nil {
		root = resolved
	}
	var names []string
	for _, r := range approved.Of(approval.KindCheck) {
		if r.Source != root || !criteria.IsCheckName(r.Subject) {
			continue
		}
		if c, err := f.Find(r.Subject); c == nil && err == nil {
			names = append(names, r.Subject)
		}
	}
	return slices.Sorted(slices.Values(names))
}
