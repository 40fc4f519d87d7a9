package checksfile

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/hooks/approval"
	"github.com/guideway-dev/guideway/internal/platform/digest"
)

// ProtectedChange is a change of a protected file since the start of a run: its path, its
// version at the start and its version now.
type ProtectedChange struct {
	Path  string `json:"path"`
	Start string `json:"start"`
	Now   string `json:"now"`
}

// protectedKey returns the key of the approval of the changes in a run.
func protectedKey(root, run string) approval.Key {
	if resolved, err := filepath.EvalSymlinks(root); err == nil {
		root = resolved
	}
	return approval.Key{Kind: approval.KindCheck, Source: root, Subject: "protect:" + run}
}

// NewChangesRecord returns the approval of changes of protected files in a run. It replaces
// an earlier approval for the run, so it must contain the changes that are still approved.
func NewChangesRecord(root, run, who string, changes []ProtectedChange) (approval.Record, error) {
	changes = slices.SortedFunc(slices.Values(changes), func(a, b ProtectedChange) int { return strings.Compare(a.Path, b.Path) })
	scope, err := json.Marshal(changes)
	if err != nil {
		return approval.Record{}, guideway.Errorf(guideway.CodeInternal, "write an approval: %w", err)
	}
	k := protectedKey(root, run)
	return approval.Record{Kind: k.Kind, Source: k.Source, Subject: k.Subject, Hash: digest.Hex(string(scope)), Who: who, Scope: scope}, nil
}

// FindChangesRecord returns the approval of changes of protected files in a run, or nil.
func FindChangesRecord(root, run string, approved approval.Records) *approval.Record {
	return approved.Find(protectedKey(root, run))
}

// ApprovedChanges returns the changes of protected files that a person approved for a run in
// a workspace. A change is approved only with the same path and the same two versions.
func ApprovedChanges(root, run string, approved approval.Records) []ProtectedChange {
	r := FindChangesRecord(root, run, approved)
	if r == nil {
		return nil
	}
	var changes []ProtectedChange
	if json.Unmarshal(r.Scope, &changes) != nil {
		return nil
	}
	return changes
}
