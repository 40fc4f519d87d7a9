// Package checksfile reads the checks that a project names in .guideway/checks.yaml, proposes
// the file for a new project, and computes the hash that a person approves before a check is
// executed for the first time.
//
// The file is untrusted: it is bounded, it must be inside the workspace, and an error in one
// check does not affect the other checks.
package checksfile

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/hooks/approval"
	"github.com/guideway-dev/guideway/internal/platform/digest"
	"github.com/guideway-dev/guideway/internal/platform/lists"
	"github.com/guideway-dev/guideway/internal/platform/safeopen"
	"github.com/guideway-dev/guideway/internal/platform/spelling"
	"github.com/guideway-dev/guideway/internal/workflow/criteria"
	"github.com/guideway-dev/guideway/internal/workflow/doc"
)

// Path is the path of the file below the workspace, with slashes.
const Path = ".guideway/checks.yaml"

// maxBytes is the maximum size of the file.
const maxBytes = 256 << 10

// maxChecks is the maximum number of checks in a file.
const maxChecks = 100

// CodeUnreadable reports a file that cannot be opened or read.
const CodeUnreadable = "checks-file-unreadable"

// Check is a check that a project names.
type Check struct {
	Name        string
	Description string
	// Command is the command with its expected result, or a rule of type criteria.Protect.
	// The arguments of a command may contain placeholders for parameters.
	Command criteria.CheckRule
	// Parameters are the parameters in the order of the file.
	Parameters []Parameter
	// Files are further files that define the command, below the workspace.
	Files []string
	// CacheTree is set if a result is reused while the tree of the workspace is the same.
	CacheTree bool
	// Sandbox is set if the command runs in a sandbox. Network allows it to use the network
	// there.
	Sandbox, Network bool
	// Line is the line of the check in the file.
	Line int

	// definition is the canonical form of the check.
	definition string
}

// Parameter is a value that a rule passes to a check with "with".
type Parameter struct {
	Name        string
	Description string
	// Default is the value without an entry in "with"; if it is nil, the entry is required.
	Default *string
	// Pattern must match the whole value; "" allows any value of one line.
	Pattern string
}

// File is a checks file.
type File struct {
	// Path is the path of the file, for messages.
	Path string
	// Exists is set if there is a file, even one that cannot be read.
	Exists bool
	// Checks are the checks without errors, in the order of the file.
	Checks []Check
	// Broken are the names of the checks with errors, in the order of the file.
	Broken []string
	// Diagnostics are the errors and warnings of the file.
	Diagnostics []guideway.Diagnostic

	// unreadable is set if the names of the checks are unknown.
	unreadable bool
}

// compileOnce compiles a pattern at its first use.
func compileOnce(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}

// Load reads the checks file of a workspace. Without a file the result has no checks. A file
// that cannot be used has diagnostics.
func Load(root string) *File {
	name := filepath.Join(root, filepath.FromSlash(Path))
	data, err := readBelow(root, Path, maxBytes)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !isPresent(name):
		return &File{Path: name}
	case err != nil:
		return &File{Path: name, Exists: true, unreadable: true, Diagnostics: []guideway.Diagnostic{{
			Severity: guideway.SeverityError, Code: CodeUnreadable, File: name,
			Message: fmt.Sprintf("The checks file cannot be used: %v.", safeopen.Cause(err)),
			Fix:     "replace " + Path + " with a regular file of at most " + fmt.Sprint(maxBytes>>10) + " KiB inside the workspace, readable for this user",
		}}}
	}
	return Parse(name, data)
}

// isPresent reports whether a name exists, even as a link to a missing file.
func isPresent(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

// readBelow reads a regular file below a directory, without following links out of it.
func readBelow(root, name string, most int64) (data []byte, err error) {
	dir, err := os.OpenRoot(root)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	return readIn(dir, name, most)
}

// sizeError returns the error for a file above a limit in bytes.
func sizeError(most int64) error { return fmt.Errorf("the file is larger than %d KiB", most>>10) }

// readIn is like readBelow for an open directory.
func readIn(dir *os.Root, name string, most int64) (data []byte, err error) {
	file, err := safeopen.OpenIn(dir, name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	data, err = safeopen.Read(context.Background(), file, most)
	if err == nil && int64(len(data)) > most {
		return nil, sizeError(most)
	}
	return data, err
}

// Find returns the check of a name, or nil if the file does not define it. A check with
// errors is an error, and so is any check of an unreadable file: it must not count as
// undefined.
func (f *File) Find(name string) (*Check, error) {
	if i := slices.IndexFunc(f.Checks, func(c Check) bool { return c.Name == name }); i >= 0 {
		return &f.Checks[i], nil
	}
	if f.unreadable || slices.Contains(f.Broken, name) {
		return nil, guideway.Errorf(guideway.CodeInvalidDefinition, "the check %s cannot be executed: %s", name, f.firstError(name)).
			WithFix("correct %s; guideway checks list shows all errors", Path)
	}
	return nil, nil
}

// Get is like Find, but returns an error with the names of similar checks if the file does
// not define the check.
func (f *File) Get(name string) (*Check, error) {
	c, err := f.Find(name)
	if c != nil || err != nil {
		return c, err
	}
	missing := guideway.Errorf(guideway.CodeNotFound, "%s defines no check %q", Path, name)
	switch names := f.Names(); {
	case !f.Exists:
		return nil, guideway.Errorf(guideway.CodeNotFound, "there is no file %s in this workspace", Path).WithFix("guideway init")
	case spelling.Closest(name, names) != "":
		return nil, missing.WithFix("did you mean %s?", spelling.Closest(name, names))
	case len(names) > 0:
		return nil, missing.WithFix("use one of: %s", strings.Join(names, ", "))
	default:
		return nil, missing.WithFix("add the check to %s", Path)
	}
}

// Names returns the names of the usable checks, in the order of the file.
func (f *File) Names() []string {
	return lists.Map(f.Checks, func(c Check) string { return c.Name })
}

// firstError returns the position and message of the first error of a check.
func (f *File) firstError(name string) string {
	for _, d := range f.Diagnostics {
		if d.Severity == guideway.SeverityError && (f.unreadable || concerns(d.Pointer, name)) {
			if d.Line > 0 {
				return fmt.Sprintf("%s:%d: %s", Path, d.Line, strings.TrimSuffix(d.Message, "."))
			}
			return strings.TrimSuffix(d.Message, ".")
		}
	}
	return "the file has errors"
}

// concerns reports whether a diagnostic at a JSON pointer affects a check: it is at the
// check, below it or above it.
func concerns(pointer, name string) bool {
	check := string(doc.Pointer("").Key("checks").Key(name))
	return strings.HasPrefix(pointer+"/", check+"/") || strings.HasPrefix(check+"/", pointer+"/")
}

//go:embed schema.json
var schemaText []byte

// Schema returns the published JSON Schema (draft-07) of the checks file. It accepts the same
// files as Parse, except for rules that a schema cannot express.
func Schema() []byte { return bytes.Clone(schemaText) }

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
