package checksfile_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/guideway-dev/guideway/internal/evidence/checksfile"
	"github.com/guideway-dev/guideway/internal/hooks/approval"
)

// An approval of changes is for one run in one workspace, and for exact versions.
func TestApprovedChanges(t *testing.T) {
	t.Parallel()
	root, other := t.TempDir(), t.TempDir()
	change := checksfile.ProtectedChange{Path: "a_test.go", Start: "100644 1", Now: "100644 2"}
	r, err := checksfile.NewChangesRecord(root, "r_1", "me", []checksfile.ProtectedChange{{Path: "b", Start: "absent", Now: "100644 3"}, change})
	if err != nil {
		t.Fatal(err)
	}
	approved := approval.Records{r}
	link := filepath.Join(other, "link")
	if err := os.Symlink(root, link); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{root, link} {
		if list := checksfile.ApprovedChanges(dir, "r_1", approved); len(list) != 2 || !slices.Contains(list, change) {
			t.Errorf("%s: %v", dir, list)
		}
	}
	if list := checksfile.ApprovedChanges(root, "r_2", approved); list != nil {
		t.Errorf("for another run: %v", list)
	}
	if list := checksfile.ApprovedChanges(other, "r_1", approved); list != nil {
		t.Errorf("in another workspace: %v", list)
	}
}
