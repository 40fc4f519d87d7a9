// Package evidence describes checks that the server executes in the workspace of a run, and
// their results. Package execute executes them, package checksfile reads the checks that a
// project names, and package attest signs and verifies statements about runs.
package evidence

import (
	"github.com/guideway-dev/guideway/internal/workflow/criteria"
)

// Workspace is the directory in which the checks of a run are executed: the root of the Git
// work tree, or the directory of the project if none exists. It is recorded when the run
// starts.
type Workspace struct {
	// Root is the absolute path of the directory on the host.
	Root string `json:"root"`
	// Host is the name of the machine.
	Host string `json:"host,omitempty"`
	// Connect is set if guideway connect read the workspace on the machine of a client. The
	// server then knows only what that machine reported.
	Connect bool `json:"connect,omitempty"`
	// Commit is the checked out commit, or empty without a commit. Tree is its tree.
	Commit string `json:"commit,omitempty"`
	Tree   string `json:"tree,omitempty"`
	// WorkTree is the tree that a commit of all files would have, apart from ignored ones. It
	// equals Tree if no file differs from the commit. An attestation is refused if it
	// differs from the tree of the attested commit.
	WorkTree string `json:"workTree,omitempty"`
	// Dirty are the paths that differ from the commit, sorted, at most MaxDirty of them.
	// DirtyCount counts all of them. DirtyHash is a hash of all these paths and their content.
	Dirty      []string `json:"dirty,omitempty"`
	DirtyCount int      `json:"dirtyCount,omitempty"`
	DirtyHash  string   `json:"dirtyHash,omitempty"`
	// DirtyStates are the mode and the hash of the content of each path of Dirty, or
	// "absent". Rules on changed files compare with them.
	DirtyStates []string `json:"dirtyStates,omitempty"`
	// IgnoreFiles are the untracked .gitignore files that ignore themselves, each as mode,
	// hash and path, at most MaxDirty of them: a new one can hide added files.
	IgnoreFiles []string `json:"ignoreFiles,omitempty"`
}

// MaxDirty is the maximum number of paths in Workspace.Dirty.
const MaxDirty = 100

// Request asks for the execution of one check.
type Request struct {
	// Run, Step and Key identify the check: Key is the JSON pointer of the rule in the
	// criteria of the step.
	Run  string `json:"run"`
	Step string `json:"step"`
	Key  string `json:"key"`
	// Template is the rule of the definition. A person approves it. Rule is the rule with the
	// variables of the run filled in.
	Template *criteria.CheckRule `json:"template"`
	Rule     *criteria.CheckRule `json:"rule"`
	// Start is the workspace of the run when it started; nil if the server had no access.
	Start *Workspace `json:"start,omitempty"`
	// ProjectPath is the directory of the client that started the run.
	ProjectPath string `json:"-"`
	// Progress, if set, receives messages about the progress of the check.
	Progress func(message string) `json:"-"`
}

// Result is the result of a check. It is the data of an event of the run.
type Result struct {
	Step string `json:"step"`
	Key  string `json:"key"`
	// Type is the type of the rule. Name is the name of a check of the project.
	Type criteria.Type `json:"type"`
	Name string        `json:"name,omitempty"`
	// With are the parameters that the rule passes to the check of the project.
	With map[string]string `json:"with,omitempty"`
	// Describe describes the check in words.
	Describe string `json:"describe"`
	// Hash is the hash of the definition of the check that a person approved, or of the rule
	// if its type needs no approval.
	Hash string `json:"hash,omitempty"`
	criteria.CheckOutcome
	// Argv and Dir are the command. ExitCode is nil if the command did not end by itself.
	Argv     []string `json:"argv,omitempty"`
	Dir      string   `json:"dir,omitempty"`
	ExitCode *int     `json:"exitCode,omitempty"`
	// DurationMS is the time that the check took, in milliseconds.
	DurationMS int64 `json:"durationMs"`
	// OutputHash is the SHA-256 of the whole output, OutputBytes its size. Head and Tail are
	// its beginning and its end; Tail is empty if Head is the whole output.
	OutputHash  string `json:"outputHash,omitempty"`
	OutputBytes int64  `json:"outputBytes,omitempty"`
	Head        string `json:"head,omitempty"`
	Tail        string `json:"tail,omitempty"`
	// Workspace is the workspace after the check.
	Workspace *Workspace `json:"workspace,omitempty"`
	// Instance identifies the server, or the guideway connect process that executed the check.
	Instance string `json:"instance,omitempty"`
	// Killed is the number of processes that outlived the command and were killed.
	Killed int `json:"killed,omitempty"`
	// Reused is set if the result is of an earlier execution for the same tree.
	Reused bool `json:"reused,omitempty"`
	// Sandboxed is set if the command ran in a sandbox.
	Sandboxed bool `json:"sandboxed,omitempty"`
}
