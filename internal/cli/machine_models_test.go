package cli

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/cli/server"
	machinedef "github.com/guideway-dev/guideway/internal/machine/definition"
	"github.com/guideway-dev/guideway/internal/machine/driver"
	"github.com/guideway-dev/guideway/internal/machine/llm"
)

// The model variables select one model for each level, or one for all levels; a key is sent
// only to the address of its own provider.
func TestModelsFromEnvironment(t *testing.T) {
	t.Parallel()
	var seen http.Header
	var path string
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen, path = r.Header.Clone(), r.URL.Path
		http.Error(w, `{"error":{"message":"no"}}`, http.StatusBadRequest)
	}))
	defer upstream.Close()
	env := map[string]string{
		"GUIDEWAY_MODEL": "openai:any", "GUIDEWAY_MODEL_BASE": "openai:base-one", "GUIDEWAY_MODEL_SMART": "anthropic:smart-one",
		"OPENAI_BASE_URL": upstream.URL + "/openai", "OPENAI_API_KEY": "open-key",
		"ANTHROPIC_BASE_URL": upstream.URL + "/anthropic", "ANTHROPIC_API_KEY": "anthropic-key",
	}
	models := &server.MachineModels{Host: &app.Host{Getenv: func(name string) string { return env[name] }}}
	for _, c := range []struct {
		level           machinedef.Level
		without         string
		name, key, path string
	}{
		{machinedef.LevelBase, "", "base-one", "Bearer open-key", "/openai/chat/completions"},
		{machinedef.LevelSmart, "", "smart-one", "anthropic-key", "/anthropic/v1/messages"},
		{machinedef.LevelFast, "", "base-one", "Bearer open-key", "/openai/chat/completions"},
		{machinedef.LevelFast, "GUIDEWAY_MODEL_BASE", "any", "Bearer open-key", "/openai/chat/completions"},
	} {
		delete(env, c.without)
		chosen, err := models.Model(driver.RunScope{}, c.level, "")
		if err != nil || chosen.Name != c.name {
			t.Errorf("%s: %q %v, want %q", c.level, chosen.Name, err, c.name)
			continue
		}
		_, _ = chosen.Complete(t.Context(), llm.Request{Model: chosen.Name, Messages: []llm.Message{{Role: llm.User, Content: "x"}}}, nil)
		if key := seen.Get("Authorization") + seen.Get("X-Api-Key"); key != c.key || path != c.path {
			t.Errorf("%s: key %q at %s, want %q at %s", c.level, key, path, c.key, c.path)
		}
	}
	env["GUIDEWAY_MODEL_FAST"] = "openai:fast-one"
	if chosen, err := models.Model(driver.RunScope{}, machinedef.LevelFast, ""); err != nil || chosen.Name != "fast-one" {
		t.Errorf("fast: %q %v", chosen.Name, err)
	}
}
