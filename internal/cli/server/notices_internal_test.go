package server

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway/internal/gateway/holds"
)

// TestNoticesOfHeldCalls checks that each call that waits leads to one notice.
func TestNoticesOfHeldCalls(t *testing.T) {
	t.Parallel()
	source := heldCallSource{holds.New(holds.Options{
		Path: filepath.Join(t.TempDir(), "held-calls.json"), Key: func() ([]byte, error) { return []byte("key"), nil },
	})}
	position := int64(-1)
	for _, tool := range []string{"push", "delete"} {
		c, err := source.store.Claim(t.Context(), holds.Request{Binding: holds.Binding{User: "ann", Client: "codex", Tool: tool}, Name: "git__" + tool, Reason: "it writes"})
		if err != nil {
			t.Fatal(err)
		}
		list, next, err := source.Read(t.Context(), position)
		if err != nil || len(list) != 1 || list[0].ID != "n_"+c.ID || !strings.Contains(list[0].Text, "codex waits for your approval to call the tool git__"+tool) {
			t.Fatalf("notices %+v, error %v", list, err)
		}
		position = next
	}
	if list, next, err := source.Read(t.Context(), position); len(list) > 0 || next != position || err != nil {
		t.Errorf("notices %+v, position %d, error %v", list, next, err)
	}
}
