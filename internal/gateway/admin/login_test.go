package admin_test

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/contexts/blob/seal"
	"github.com/guideway-dev/guideway/internal/gateway"
	"github.com/guideway-dev/guideway/internal/gateway/admin"
	"github.com/guideway-dev/guideway/internal/gateway/upstream"
	"github.com/guideway-dev/guideway/internal/testutil/authserver"
)

// TestStartLogin checks that a login stores the tokens, that it ends an earlier login, and that
// its redirect can be used once.
func TestStartLogin(t *testing.T) {
	t.Parallel()
	server := authserver.New(http.NotFoundHandler())
	t.Cleanup(server.Close)
	dir := t.TempDir()
	file := filepath.Join(dir, "guideway.json")
	if err := os.WriteFile(file, []byte(`{"upstreams": {"wiki": {"url": "`+server.URL+`/mcp"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	changed := make(chan string, 1)
	base := &http.Transport{DisableKeepAlives: true}
	opts := upstream.Options{HTTP: base, Logins: &upstream.Logins{
		Dir: filepath.Join(dir, "logins"), User: "ann", Source: seal.File{Path: filepath.Join(dir, "key")},
		Changed: func(name string) error { changed <- name; return nil },
	}}
	g, err := gateway.New(gateway.Options{Key: []byte(strings.Repeat("k", 32)), Upstream: opts})
	if err != nil {
		t.Fatal(err)
	}
	life, end := context.WithCancel(context.Background())
	var tasks sync.WaitGroup
	t.Cleanup(func() { end(); tasks.Wait(); g.Close(context.Background()) })
	s := admin.New(admin.Options{
		Load: func() (*config.Config, error) {
			return config.Load(config.Options{File: file, Getenv: func(name string) string { return map[string]string{"HOME": dir}[name] }, Dir: dir})
		},
		Gateway: g, Upstream: opts, Background: func(task func(context.Context)) { tasks.Go(func() { task(life) }) },
	})
	open := func(address string) (status int, redirect, page string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := base.RoundTrip(req)
		if err != nil {
			return 0, "", err.Error()
		}
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, resp.Header.Get("Location"), string(text)
	}
	first, err := s.StartLogin(t.Context(), "wiki", "ann", "")
	if err != nil {
		t.Fatal(err)
	}
	second, err := s.StartLogin(t.Context(), "wiki", "ann", "")
	if err != nil || second.Issuer != server.URL {
		t.Fatalf("the second login: %+v, %v", second, err)
	}
	_, old, _ := open(first.URL)
	_, redirect, _ := open(second.URL)
	if status, _, page := open(strings.Replace(redirect, "state=", "state=x", 1)); status != http.StatusBadRequest {
		t.Errorf("a redirect with another state: %d %s", status, page)
	}
	if status, _, page := open(redirect); status != http.StatusOK || <-changed != "wiki" {
		t.Errorf("the redirect: %d %s", status, page)
	}
	for name, address := range map[string]string{"the earlier login": old, "the redirect again": redirect} {
		if status, _, page := open(address); status == http.StatusOK {
			t.Errorf("%s: %d %s", name, status, page)
		}
	}
	if list, err := s.List("ann"); err != nil || list[0].Login == nil || server.Asked("authorization_code") != 1 {
		t.Errorf("the list is %+v, %v, with %d exchanged codes", list, err, server.Asked("authorization_code"))
	}
}
