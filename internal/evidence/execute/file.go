package execute

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/digest"
	"github.com/guideway-dev/guideway/internal/platform/safeopen"
	"github.com/guideway-dev/guideway/internal/workflow/criteria"
)

// maxFile is the maximum size of a file whose content is checked.
const maxFile = 16 << 20

// executeFile checks a file of the workspace. Symbolic links are followed inside the
// workspace.
func (j *job) executeFile(ctx context.Context) error {
	name := j.rule.Path
	if name == "" {
		j.giveUp("the path of the file is empty: set the variable that fills it")
		return nil
	}
	if reason, _ := criteria.ExplainPath(name); reason != "" {
		j.giveUp(fmt.Sprintf("the path %q %s", name, reason))
		return nil
	}
	root, err := os.OpenRoot(j.root)
	if err != nil {
		return guideway.Errorf(guideway.CodeUnavailable, "the workspace %s cannot be read: %w", j.root, err).
			WithFix("check that the directory exists on this computer, and that this user can read it")
	}
	defer root.Close()
	local := filepath.FromSlash(name)
	if j.rule.Exists != nil && !*j.rule.Exists {
		switch _, err := root.Lstat(local); {
		case errors.Is(err, fs.ErrNotExist):
			j.pass()
		case err != nil:
			j.giveUp(fmt.Sprintf("the file %s cannot be read: %v", name, safeopen.Cause(err)))
		default:
			j.fail(fmt.Sprintf("the file %s exists, but must not", name))
		}
		return nil
	}
	info, err := root.Stat(local)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		j.fail(fmt.Sprintf("the file %s does not exist", name))
	case err != nil:
		j.fail(fmt.Sprintf("the file %s cannot be read: %v", name, safeopen.Cause(err)))
	case info.IsDir() && !j.readsContent():
		j.pass()
	case !info.Mode().IsRegular():
		j.fail(fmt.Sprintf("%s is %s, not a regular file", name, safeopen.Kind(info.Mode())))
	default:
		j.checkContent(ctx, root, name)
	}
	return nil
}

// readsContent reports whether the rule requires more than a file's existence.
func (j *job) readsContent() bool {
	r := j.rule
	return r.MinBytes != nil || r.MaxBytes != nil || r.Matches != "" || r.Excludes != "" || r.Schema != nil
}

// checkContent checks the size and the content of a file.
func (j *job) checkContent(ctx context.Context, root *os.Root, name string) {
	file, err := safeopen.OpenIn(root, name)
	if err != nil {
		j.fail(fmt.Sprintf("the file %s cannot be read: %v", name, safeopen.Cause(err)))
		return
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		j.giveUp(fmt.Sprintf("the file %s cannot be read: %v", name, safeopen.Cause(err)))
		return
	}
	switch r := j.rule; {
	case r.MinBytes != nil && info.Size() < *r.MinBytes:
		j.fail(fmt.Sprintf("the file %s has %d bytes, fewer than %d", name, info.Size(), *r.MinBytes))
		return
	case r.MaxBytes != nil && info.Size() > *r.MaxBytes:
		j.fail(fmt.Sprintf("the file %s has %d bytes, more than %d", name, info.Size(), *r.MaxBytes))
		return
	case r.Matches == "" && r.Excludes == "" && r.Schema == nil:
		j.pass()
		return
	}
	content, err := safeopen.Read(ctx, file, maxFile)
	switch {
	case err != nil:
		j.giveUp(fmt.Sprintf("the file %s cannot be read: %v", name, safeopen.Cause(err)))
		return
	case len(content) > maxFile:
		j.giveUp(fmt.Sprintf("the file %s has more than %d bytes, so that its content cannot be checked", name, maxFile))
		return
	}
	j.result.OutputHash, j.result.OutputBytes = digest.Hex(string(content)), int64(len(content))
	if j.judgeText("the file "+name, text{[]string{string(content)}, true}); !j.result.Passed || j.rule.Schema == nil {
		return
	}
	issue, err := criteria.CheckSchema(j.rule.Schema, string(content))
	switch {
	case err != nil:
		j.giveUp(fmt.Sprintf("the file %s cannot be checked against its schema: %v", name, err))
	case issue != "":
		j.fail(fmt.Sprintf("the file %s does not conform to its schema: %s", name, issue))
	}
}
