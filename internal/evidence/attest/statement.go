// Package attest makes, signs and verifies statements about runs: an in-toto Statement v1 in
// a DSSE envelope, signed with Ed25519. A statement names the definition, the steps with
// their evidence and claims, the approvals, and the commit and the tree that they are about.
// A reader needs only the file and a public key.
package attest

import (
	"crypto/sha256"
	"encoding/hex"
	"path"
	"regexp"
	"sync"
	"time"

	"github.com/guideway-dev/guideway/internal/platform/jsontext"
	"github.com/guideway-dev/guideway/internal/workflow/criteria"
)

// The types of the envelope's content.
const (
	// PayloadType is the DSSE type of an in-toto statement.
	PayloadType = "application/vnd.in-toto+json"
	// StatementType is the type of an in-toto Statement v1.
	StatementType = "https://in-toto.io/Statement/v1"
	// PredicateType is the type of a statement about a run. A change of the members that a
	// reader must know changes it.
	PredicateType = "https://guideway.dev/attestation/run/v1"
)

// Directory is the directory of a repository that contains attestations.
const Directory = ".guideway/attestations"

// IsFile reports whether a path in a repository is that of an attestation. An attestation is
// not a part of its own subject.
func IsFile(name string) bool {
	return path.Dir(name) == Directory && path.Ext(name) == ".json"
}

// The names of the digests of Git objects in in-toto.
const (
	digestCommit = "gitCommit"
	digestTree   = "gitTree"
)

// Statement is an in-toto Statement v1 about a run.
type Statement struct {
	Type string `json:"_type"`
	// Subject are the commit and the tree, in this order.
	Subject       []Subject `json:"subject"`
	PredicateType string    `json:"predicateType"`
	Predicate     Predicate `json:"predicate"`
}

// Subject is a Git object.
type Subject struct {
	Name   string            `json:"name"`
	Digest map[string]string `json:"digest"`
}

// Predicate describes a completed run. It contains hashes of the texts of the run, never the
// texts.
type Predicate struct {
	// Guideway is the version of the program.
	Guideway   string    `json:"guideway"`
	AttestedAt time.Time `json:"attestedAt"`
	Run        Run       `json:"run"`
	Workflow   Workflow  `json:"workflow"`
	// Start is the workspace at the start of the run, if it is known.
	Start *Workspace `json:"start,omitempty"`
	// Steps are the completed steps in order. A repeated step is listed each time.
	Steps []Step `json:"steps"`
	// Skipped are the ids of the skipped steps in order.
	Skipped []string `json:"skipped,omitempty"`
	// Approvals are the answers to gates in order.
	Approvals []Approval `json:"approvals"`
	// Protected is the approval of changes of protected files, if there is one.
	Protected *ProtectedApproval `json:"protected,omitempty"`
	// Refused counts the refused attempts by rule.
	Refused map[string]int `json:"refused,omitempty"`
}

// Run identifies a run.
type Run struct {
	ID          string    `json:"id"`
	GoalHash    string    `json:"goalHash,omitempty"`
	StartedAt   time.Time `json:"startedAt"`
	CompletedAt time.Time `json:"completedAt"`
	// Events is the number of events, Head the MAC of the last one.
	Events int64  `json:"events"`
	Head   string `json:"head"`
}

// Workflow identifies a definition.
type Workflow struct {
	ID      string `json:"id"`
	Version string `json:"version"`
	// Definition is the hash of the definition, "sha256:…".
	Definition string `json:"definition"`
}

// Workspace is the state of a workspace.
type Workspace struct {
	Commit string `json:"commit,omitempty"`
	// Tree is the tree of the commit. WorkTree is the tree of the files, committed or not.
	Tree     string `json:"tree,omitempty"`
	WorkTree string `json:"workTree,omitempty"`
	// Dirty counts the paths that differ from the commit.
	Dirty int `json:"dirty,omitempty"`
}

// Content returns the tree of the files, or "" if it is not known.
func (w *Workspace) Content() string {
	switch {
	case w == nil:
		return ""
	case w.Dirty == 0:
		return w.Tree
	}
	return w.WorkTree
}

// Label reports how a step was decided.
type Label string

// The labels.
const (
	// Evidence is the label of a step that a check decided.
	Evidence Label = "evidence"
	// Claim is the label of a step that only the texts of the agent decided.
	Claim Label = "claim"
)

// Step is a completed step.
type Step struct {
	ID    string `json:"id"`
	Round int    `json:"round,omitempty"`
	// Seq is the number of the event, At its time.
	Seq        int64     `json:"seq"`
	At         time.Time `json:"at"`
	Label      Label     `json:"label"`
	OutputHash string    `json:"outputHash,omitempty"`
	Checks     []Check   `json:"checks,omitempty"`
}

// Check is the result of a check of a completed step.
type Check struct {
	// Key is the JSON pointer of the rule in the criteria of the step.
	Key  string        `json:"key"`
	Type criteria.Type `json:"type"`
	// Name is the name of a check of the project.
	Name string `json:"name,omitempty"`
	// With are the parameters that the rule passes to the check of the project.
	With map[string]string `json:"with,omitempty"`
	// Definition is the hash of the definition of the check that a person approved.
	Definition string `json:"definition,omitempty"`
	Passed     bool   `json:"passed"`
	// Decided is set if the step would not have been completed with the other outcome.
	Decided      bool     `json:"decided,omitempty"`
	Inconclusive bool     `json:"inconclusive,omitempty"`
	Undefined    bool     `json:"undefined,omitempty"`
	Argv         []string `json:"argv,omitempty"`
	ExitCode     *int     `json:"exitCode,omitempty"`
	DurationMS   int64    `json:"durationMs"`
	OutputHash   string   `json:"outputHash,omitempty"`
	// Workspace is the workspace after the check.
	Workspace *Workspace `json:"workspace,omitempty"`
	Host      string     `json:"host,omitempty"`
	Instance  string     `json:"instance,omitempty"`
	Reused    bool       `json:"reused,omitempty"`
	Sandboxed bool       `json:"sandboxed,omitempty"`
}

// Title returns the name of the check, or its rule.
func (c *Check) Title() string {
	if c.Name != "" {
		return c.Name
	}
	return string(c.Type) + " " + c.Key
}

// Summary returns the name of the check and its result in words.
func (c *Check) Summary() string {
	switch {
	case c.Undefined:
		return c.Title() + " is undefined"
	case c.Inconclusive:
		return c.Title() + " has no result"
	case c.Passed:
		return c.Title() + " passed"
	default:
		return c.Title() + " failed"
	}
}

// Approval is the answer to a gate.
type Approval struct {
	Gate   string    `json:"gate"`
	Option string    `json:"option"`
	Seq    int64     `json:"seq"`
	At     time.Time `json:"at"`
	// By is the user, Via the channel. Person reports whether the channel proves a person.
	By     string `json:"by,omitempty"`
	Via    string `json:"via"`
	Person bool   `json:"person"`
}

// ProtectedApproval is the approval of changes of protected files in a run.
type ProtectedApproval struct {
	By      string            `json:"by,omitempty"`
	At      time.Time         `json:"at"`
	Changes []ProtectedChange `json:"changes"`
}

// ProtectedChange is a change of a protected file: its path, and its mode and hash at the
// start of the run and when it was approved.
type ProtectedChange struct {
	Path  string `json:"path"`
	Start string `json:"start"`
	Now   string `json:"now"`
}

// NewStatement returns a statement about a run with a commit and its tree as the subject.
func NewStatement(commit, tree string, p Predicate) *Statement {
	return &Statement{
		Type: StatementType, PredicateType: PredicateType, Predicate: p,
		Subject: []Subject{
			{Name: "commit", Digest: map[string]string{digestCommit: commit}},
			{Name: "tree", Digest: map[string]string{digestTree: tree}},
		},
	}
}

// Commit returns the commit that the statement is about.
func (s *Statement) Commit() string { return s.digest(digestCommit) }

// Tree returns the tree that the statement is about.
func (s *Statement) Tree() string { return s.digest(digestTree) }

func (s *Statement) digest(name string) string {
	for _, subject := range s.Subject {
		if value := subject.Digest[name]; value != "" {
			return value
		}
	}
	return ""
}

// LabelOf returns the label of a step with these checks.
func LabelOf(checks []Check) Label {
	for i := range checks {
		if checks[i].Decided {
			return Evidence
		}
	}
	return Claim
}

// HashText returns the hash of a text, or "" for the empty text.
func HashText(text string) string {
	if text == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(text))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// encode returns the payload. It is the only encoding that Open accepts.
func (s *Statement) encode() ([]byte, error) { return jsontext.Marshal(s) }

// objectID is the form of the id of a Git object, with SHA-1 or SHA-256.
var objectID = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`) })

// IsObjectID reports whether a text is the full id of a Git object.
func IsObjectID(text string) bool { return objectID().MatchString(text) }

// validate returns the contradiction in a statement, or "".
func (s *Statement) validate() string {
	p := &s.Predicate
	if len(s.Subject) != 2 || !IsObjectID(s.Commit()) || !IsObjectID(s.Tree()) {
		return "the subject is not a commit and a tree"
	}
	if p.Run.ID == "" || p.Run.Events < 1 || p.Workflow.ID == "" || p.Workflow.Definition == "" {
		return "the run, its events or its workflow are missing"
	}
	last := int64(0)
	for i := range p.Steps {
		step := &p.Steps[i]
		if step.Seq <= last || step.Seq > p.Run.Events {
			return "the steps are not in the order of the events"
		}
		if step.Label != LabelOf(step.Checks) {
			return "the step " + step.ID + " has the label " + string(step.Label) + ", which does not agree with its checks"
		}
		last = step.Seq
	}
	return ""
}
