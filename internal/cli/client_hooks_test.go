package cli

import (
	"strings"
	"testing"

	"github.com/guideway-dev/guideway/internal/clienthook"
	"github.com/guideway-dev/guideway/internal/install"
)

// TestInstalledEventsAreAnswered checks that Guideway knows each event that it tells a client
// to report, and that the clients of both commands are the same.
func TestInstalledEventsAreAnswered(t *testing.T) {
	t.Parallel()
	var ids []string
	for _, c := range install.HookClients() {
		ids = append(ids, c.ID)
		client, err := clienthook.FindClient(c.ID)
		if err != nil {
			t.Fatal(err)
		}
		h := clienthook.Handler{Client: client, Sessions: &clienthook.Sessions{Dir: t.TempDir()}}
		for _, event := range c.Events() {
			if out := h.Answer(t.Context(), event, strings.NewReader(`{"session_id":"s"}`)); len(out.Err) > 0 {
				t.Errorf("%s: %s is answered %s", c.ID, event, out.Err)
			}
		}
	}
	var answered []string
	for _, c := range clienthook.Clients() {
		answered = append(answered, c.ID)
	}
	if got, want := strings.Join(ids, " "), strings.Join(answered, " "); got != want {
		t.Errorf("hooks are installed for %s and answered for %s", got, want)
	}
}
