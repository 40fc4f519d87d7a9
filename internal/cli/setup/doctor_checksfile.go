package setup

import (
	"fmt"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/evidence/checksfile"
	"github.com/guideway-dev/guideway/internal/evidence/execute/worktree"
)

// checkChecksFile checks the checks of the project in the working directory and their
// approvals. It executes nothing.
func (o *DoctorOptions) checkChecksFile(cfg *config.Config) []Check {
	root, err := worktree.Root(o.app.Host.Dir)
	if err != nil {
		return nil
	}
	file := checksfile.Load(root)
	approved, err := app.ReadApprovals(cfg, o.app.Host.CurrentTime)
	if err != nil {
		return []Check{{Name: "checks", Status: CheckFail, Message: "the approvals cannot be read, so no check counts as approved: " + err.Error(), Fix: guideway.ErrorFix(err)}}
	}
	removed := file.Removed(root, approved)
	if !file.Exists && len(removed) == 0 {
		return nil
	}
	c := Check{Name: "checks", Status: CheckOK, Message: fmt.Sprintf("%d usable", len(file.Checks)), Diagnostics: file.Diagnostics}
	if len(file.Checks)+len(file.Broken) == 0 && len(file.Diagnostics) > 0 {
		c.Message = "the checks file cannot be used"
	}
	waiting := len(removed)
	for i := range file.Checks {
		subject, err := checksfile.NewSubject(root, &file.Checks[i])
		if err == nil {
			err = subject.CheckApproved(approved)
		}
		if err != nil {
			waiting++
		}
	}
	if len(file.Broken) > 0 {
		c.Message += fmt.Sprintf(", %d with errors", len(file.Broken))
	}
	if waiting > 0 {
		c.Status, c.Fix = CheckWarn, "guideway checks approve"
		c.Message += fmt.Sprintf(", %d waiting for approval", waiting)
	}
	if len(removed) > 0 {
		c.Message += "; no longer defined: " + strings.Join(removed, ", ")
	}
	if len(file.Diagnostics) > 0 {
		c.Status = worstSeverity(file.Diagnostics)
	}
	return []Check{c}
}
