package cli

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/engine"
)

const (
	personsWords = "four words in a row"
	agentsWords  = "my own words"
)

// guardedInstallation is an installation with a passphrase, a running server, and a run at a human
// approval.
type guardedInstallation struct {
	t    *testing.T
	home string
	data string
	// key is the path of the journal's key.
	key    string
	run    string
	server *runningCommand
	// tries counts the attempts; each is an hour after the previous one, so that wrong
	// passphrases cause no delay.
	tries int
}

// newGuardedInstallation creates the installation. settings is the content of guideway.json
// in the home directory.
func newGuardedInstallation(t *testing.T, settings string) *guardedInstallation {
	t.Helper()
	const flow = `{"id": "flow", "name": "Flow", "description": "A gate.", "version": "1.0.0",
		"steps": [{"id": "one", "title": "One", "prompt": "Do it.", "requireConfirmation": true, "approval": "human"}]}`
	home := t.TempDir()
	b := &guardedInstallation{t: t, home: home, data: filepath.Join(home, ".local", "share", "guideway")}
	b.key = filepath.Join(b.data, "journal.key")
	if settings != "" {
		b.key = filepath.Join(home, "keys", "journal.key")
		writeFile(t, filepath.Join(home, ".config", "guideway", "guideway.json"), settings)
	}
	writeFile(t, filepath.Join(home, ".guideway", "workflows", "flow.json"), flow)
	host, _ := newTerminal(t, nil)
	host.Dir, host.Getenv = home, homeDirectory(home)
	b.run = agent(t, host, `start {"WorkflowID":"flow"}
		continue {"Output":"done"}`)
	b.server = startCommand(t, home, "serve")
	b.server.err.waitFor(t, "Stop with Ctrl-C")
	if code, out := b.runAtTerminal(relocation{}, "runs approve --set-passphrase", personsWords, personsWords); code != app.ExitOK {
		t.Fatal(out)
	}
	return b
}

// relocation makes an attempt use different files than the person's.
type relocation struct {
	args []string
	env  map[string]string
}

func (w relocation) String() string { return fmt.Sprint(w.args, w.env) }

// runAtTerminal runs a command at a terminal and types the input that it asks for.
func (b *guardedInstallation) runAtTerminal(w relocation, command string, typed ...string) (int, string) {
	b.tries++
	host, out := newTerminal(b.t, nil)
	in := &fakeTerminal{lines: typed, echo: out}
	host.In, host.Dir = in, b.home
	host.Now = func() time.Time { return time.Now().Add(time.Duration(b.tries) * time.Hour) }
	env := map[string]string{"HOME": b.home, "NO_COLOR": "1"}
	maps.Copy(env, w.env)
	host.Getenv = func(name string) string { return env[name] }
	typeSecrets(&host, in)
	code := Run(b.t.Context(), append(strings.Fields(command), w.args...), host)
	return code, out.String()
}

// acceptsCredential reports whether the server accepts the printed link or token as a
// person's.
func (b *guardedInstallation) acceptsCredential(printed string) bool {
	b.t.Helper()
	address := regexp.MustCompile(`http://(127\.0\.0\.1:\d+)/mcp`).FindStringSubmatch(b.server.err.String())[1]
	var req *http.Request
	var err error
	if code := regexp.MustCompile(`/login/(\S+)`).FindStringSubmatch(printed); code != nil {
		req, err = http.NewRequestWithContext(b.t.Context(), http.MethodPost, "http://"+address+"/login/"+code[1], nil)
	} else if token := regexp.MustCompile(`gdn_\S+`).FindString(printed); token != "" {
		if req, err = http.NewRequestWithContext(b.t.Context(), http.MethodGet, "http://"+address+"/api/runs", nil); err == nil {
			req.Header.Set("Authorization", "Bearer "+token)
		}
	}
	if err != nil {
		b.t.Fatal(err)
	}
	if req == nil {
		return false
	}
	req.Header.Set("Origin", "http://"+address)
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, answer.Body)
	_ = answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}

// gateIsClosed reports whether the gate is still closed.
func (b *guardedInstallation) gateIsClosed() bool {
	b.t.Helper()
	code, out := b.runAtTerminal(relocation{}, "runs show --json "+b.run)
	if code != app.ExitOK {
		b.t.Fatal(out)
	}
	return strings.Contains(out, `"status": "`+string(engine.StatusWaiting)+`"`)
}

// relocations returns the ways in which an agent that can run commands at a terminal and
// write its own files can name different files: by variables, by flags and in a settings
// file.
func (b *guardedInstallation) relocations() []relocation {
	b.t.Helper()
	elsewhere := b.t.TempDir()
	at := func(name string) string { return filepath.Join(elsewhere, name) }
	var list []relocation
	for _, name := range []string{
		"HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "GUIDEWAY_DATA_DIR", "WORKRAIL_DATA_DIR", "WORKRAIL_STORAGE_PATH",
		"GUIDEWAY_JOURNAL_KEY_FILE", "GUIDEWAY_JOURNAL_HEADS_DIR", "GUIDEWAY_TOKEN_FILE",
	} {
		list = append(list, relocation{env: map[string]string{name: at(name)}})
	}
	settings := at("guideway.json")
	writeFile(b.t, settings, fmt.Sprintf(`{"dataDir": %q, "journal": {"keyFile": %q}}`, b.data, at("settings/k")))
	list = append(list, relocation{args: []string{"--config", settings}}, relocation{env: map[string]string{"GUIDEWAY_CONFIG": settings}})
	link := at("links/journal.key")
	writeFile(b.t, at("links/README"), "what is linked to from here")
	if err := os.Symlink(b.key, link); err != nil {
		b.t.Fatal(err)
	}
	for i, key := range []string{
		"", b.key, at("flags/k"), link, filepath.Join(b.data, "journal.key"), filepath.Join(b.data, "mine"),
		filepath.Join(b.data, "access", "k"), filepath.Join(b.data, "servers", "..", "tokens", "k"), "k",
	} {
		for _, data := range []string{"", b.data, at(fmt.Sprint("data-", i))} {
			for _, home := range []string{"", at(fmt.Sprint("home-", i))} {
				w := relocation{}
				if key != "" {
					w.args = append(w.args, "--journal-key-file", key)
				}
				if data != "" {
					w.args = append(w.args, "--data-dir", data)
				}
				if home != "" {
					w.env = map[string]string{"HOME": home}
				}
				if len(w.args) > 0 {
					list = append(list, w)
				}
			}
		}
	}
	return list
}

// Without the passphrase, no command opens a gate, whichever files an agent names: neither
// directly nor by a link or token that the running server accepts. With the passphrase, all
// these commands work.
func TestPassphraseCannotBeBypassed(t *testing.T) {
	t.Parallel()
	for name, settings := range map[string]string{
		"default locations":     "",
		"a configured key file": `{"journal": {"keyFile": "../../keys/journal.key"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newGuardedInstallation(t, settings)
			for i, w := range b.relocations() {
				b.runAtTerminal(w, "runs approve --set-passphrase", agentsWords, agentsWords)
				if code, out := b.runAtTerminal(w, "runs approve "+b.run, agentsWords, "1", ""); code == app.ExitOK {
					t.Fatalf("%s: approve opened the gate:\n%s", w, out)
				}
				if code, out := b.runAtTerminal(w, "runs resume "+b.run, agentsWords, "1", ""); code == app.ExitOK || !b.gateIsClosed() {
					t.Fatalf("%s: resume opened the gate:\n%s", w, out)
				}
				if code, out := b.runAtTerminal(w, "open", agentsWords); b.acceptsCredential(out) {
					t.Errorf("%s: open printed a valid link:\n%s", w, out)
				} else if code == app.ExitOK {
					t.Errorf("%s: open succeeded without a valid link:\n%s", w, out)
				}
				if _, out := b.runAtTerminal(w, fmt.Sprintf("tokens create t%d --scope approve", i), agentsWords); b.acceptsCredential(out) {
					t.Errorf("%s: tokens create printed a valid token:\n%s", w, out)
				}
			}
			if code, out := b.runAtTerminal(relocation{}, "open", personsWords); code != app.ExitOK || !b.acceptsCredential(out) {
				t.Errorf("open with the person's passphrase printed no valid link:\n%s", out)
			}
			if code, out := b.runAtTerminal(relocation{}, "tokens create phone --scope approve", personsWords); code != app.ExitOK || !b.acceptsCredential(out) {
				t.Errorf("the server rejects the person's token:\n%s", out)
			}
			if code, out := b.runAtTerminal(relocation{}, "runs approve "+b.run, personsWords, "1", ""); code != app.ExitOK || b.gateIsClosed() {
				t.Errorf("approve with the person's passphrase failed:\n%s", out)
			}
		})
	}
}
