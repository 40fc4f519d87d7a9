package replicatest

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/cli/passphrase"
	"github.com/guideway-dev/guideway/internal/gateway/holds"
	"github.com/guideway-dev/guideway/internal/hooks/approval"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	"github.com/guideway-dev/guideway/internal/testutil/crash"
)

// startReplicas starts replicas with an equal environment, and returns the URL of the proxy.
func (c *cluster) startReplicas(n int) string {
	c.t.Helper()
	for range n {
		c.start()
	}
	return c.roundRobin()
}

// TestCredentialsAreShared checks that the server's token, named tokens, login links and
// logins are valid at every replica, and that what ends at one ends at all.
func TestCredentialsAreShared(t *testing.T) {
	t.Parallel()
	const replicas = 3
	c := newCluster(t)
	at := c.startReplicas(replicas)
	status := func(token string) (list []int) {
		for range replicas {
			got, _, _ := request(t, http.MethodGet, at+"/api/runs", token, nil, nil)
			list = append(list, got)
		}
		return list
	}
	check := func(what, token string, want int) {
		t.Helper()
		for i, got := range status(token) {
			if got != want {
				t.Errorf("%s at replica %d: %d, want %d", what, i, got, want)
			}
		}
	}
	for _, r := range c.replicas {
		check("the token of the token file", r.token(), http.StatusOK)
	}
	out, err := c.command(c.replicas[0].home, "token", "create", "reader", "--scope", "read")
	token := regexp.MustCompile(`gdn_\S+`).FindString(out)
	if err != nil || token == "" {
		t.Fatalf("token create: %v\n%s", err, out)
	}
	check("a named token", token, http.StatusOK)
	if out, err := c.command(c.replicas[1].home, "token", "list"); err != nil || !strings.Contains(out, "reader") {
		t.Errorf("token list on another machine: %v\n%s", err, out)
	}
	if out, err := c.command(c.replicas[2].home, "token", "revoke", "reader"); err != nil {
		t.Errorf("token revoke: %v\n%s", err, out)
	}
	out, err = c.command(c.replicas[1].home, "audit", "list")
	if err != nil || !strings.Contains(out, "token_created") || !strings.Contains(out, "token_revoked") {
		t.Errorf("the audit log of another replica: %v\n%s", err, out)
	}
	if out, err = c.command(c.replicas[0].home, "audit", "verify"); err != nil || !strings.Contains(out, "every link holds") {
		t.Errorf("verify the audit log: %v\n%s", err, out)
	}
	check("a revoked token", token, http.StatusUnauthorized)
}

// TestLoginsAreShared checks that a login link that one machine made logs a browser in once,
// through any replica, and that a logout ends the login at all of them.
func TestLoginsAreShared(t *testing.T) {
	t.Parallel()
	const replicas = 3
	c := newCluster(t)
	at := c.startReplicas(replicas)
	browsers, err := app.OpenBrowserSessions(c.config(c.replicas[0].home))
	checkError(t, err)
	code, _, err := browsers.NewLink("ann")
	checkError(t, err)
	jar, err := cookiejar.New(nil)
	checkError(t, err)
	browser := &http.Client{Jar: jar}
	send := func(method, path, key string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), method, at+path, http.NoBody)
		checkError(t, err)
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set(auth.KeyHeader, key)
		answer, err := browser.Do(r)
		checkError(t, err)
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		checkError(t, err)
		return answer.StatusCode, string(text)
	}
	status, page := send(http.MethodPost, "/login/"+code, "")
	key := regexp.MustCompile(`name="guideway-key" content="([^"]+)"`).FindStringSubmatch(page)
	if status != http.StatusOK || key == nil {
		t.Fatalf("the login returns %d: %s", status, page)
	}
	for range replicas {
		if status, _ := send(http.MethodPost, "/login/"+code, ""); status != http.StatusUnauthorized {
			t.Errorf("a second use of the link: %d", status)
		}
		if status, text := send(http.MethodGet, "/api/runs", key[1]); status != http.StatusOK {
			t.Errorf("the login is not valid: %d %s", status, text)
		}
	}
	if status, text := send(http.MethodPost, "/api/logout", key[1]); status != http.StatusOK {
		t.Errorf("logout: %d %s", status, text)
	}
	for range replicas {
		if status, _ := send(http.MethodGet, "/api/runs", key[1]); status != http.StatusUnauthorized {
			t.Errorf("after the logout: %d", status)
		}
	}
}

// TestPassphraseIsShared checks that a passphrase that was set on one machine is the one of
// all, that no other can be set without it, and that wrong guesses count everywhere.
func TestPassphraseIsShared(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	on := func() passphrase.File {
		f := (&app.Host{}).PassphraseFile(c.config(t.TempDir()))
		f.Cost = passphrase.Cost{Passes: 1, KiB: 8, Threads: 1}
		return f
	}
	const right = "four words in a row"
	checkError(t, on().Set(t.Context(), "", right))
	if err := on().Set(t.Context(), "", "another passphrase"); guideway.ErrorCode(err) != guideway.CodeForbidden {
		t.Errorf("a second passphrase without the first: %v", err)
	}
	checkError(t, on().Check(t.Context(), right))
	for range 3 {
		_ = on().Check(t.Context(), "wrong")
	}
	if err := on().Check(t.Context(), right); err == nil || !strings.Contains(err.Error(), "next attempt") {
		t.Errorf("after wrong guesses on other machines: %v", err)
	}
}

// TestSharedStateIsSigned checks that an entry that was edited in the database grants nothing
// and is reported.
func TestSharedStateIsSigned(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	cfg := c.config(t.TempDir())
	approvals, err := app.OpenApprovals(cfg, time.Now)
	checkError(t, err)
	_, err = approvals.Put(t.Context(), approval.Record{Kind: approval.KindMachine, Source: "s", Subject: "m", Hash: "h", Who: "ann"})
	checkError(t, err)
	if records, err := app.ReadApprovals(c.config(t.TempDir()), time.Now); err != nil || len(records) != 1 {
		t.Errorf("another machine reads %v, %v", records, err)
	}
	crash.Exec(t, c.store, `update shared set value = replace(value, '"subject": "m"', '"subject": "x"') where name = 'approvals.json'`)
	records, err := app.ReadApprovals(cfg, time.Now)
	if guideway.ErrorCode(err) != guideway.CodeForbidden || records != nil {
		t.Errorf("edited approvals: %v, %v", records, err)
	}
	crash.Exec(t, c.store, `update shared set name = 'held-calls.json' where name = 'approvals.json'`)
	if _, err := (&app.App{Host: &app.Host{Err: io.Discard}}).OpenHolds(cfg).List("ann"); guideway.ErrorCode(err) != guideway.CodeForbidden {
		t.Errorf("an entry with the name of another: %v", err)
	}
}

// TestHeldCallsAreShared checks that a call that was held at one replica is read, answered and
// used at others, once, with encryption too.
func TestHeldCallsAreShared(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.env = []string{"GUIDEWAY_ENCRYPTION=key-file", "GUIDEWAY_ENCRYPTION_KEY_FILE=" + filepath.Join(c.secrets, "encryption.key")}
	on := func() *holds.Store {
		return (&app.App{Host: &app.Host{Err: io.Discard}}).OpenHolds(c.config(t.TempDir()))
	}
	call := holds.Request{Binding: holds.Binding{User: "ann", Tool: "push"}, Name: "git__push", Arguments: json.RawMessage(`{"branch":"main"}`)}
	held, err := on().Claim(t.Context(), call)
	checkError(t, err)
	list, err := on().List("ann")
	checkError(t, err)
	if len(list) != 1 || string(list[0].Arguments) != string(call.Arguments) {
		t.Fatalf("another machine reads %+v", list)
	}
	_, err = on().Answer(t.Context(), holds.AnswerRequest{User: "ann", ID: held.ID, Answer: holds.Answer{Approve: true, By: "ann"}})
	checkError(t, err)
	used := 0
	for range 3 {
		got, err := on().Claim(t.Context(), call)
		checkError(t, err)
		if got.Status == holds.Used {
			used++
		}
	}
	if used != 1 {
		t.Errorf("the approval was used %d times", used)
	}
}
