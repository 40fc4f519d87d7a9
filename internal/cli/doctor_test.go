package cli

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	setupcmd "github.com/guideway-dev/guideway/internal/cli/setup"
	"github.com/guideway-dev/guideway/internal/config"
)

func TestDoctorFindsServer(t *testing.T) {
	t.Parallel()
	answer := func(status int, body string) string {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/api/health" {
				t.Errorf("the doctor requested %s, want /api/health", r.URL.Path)
			}
			w.WriteHeader(status)
			fmt.Fprint(w, body)
		}))
		t.Cleanup(srv.Close)
		return strings.TrimPrefix(srv.URL, "http://")
	}
	listen := func() (net.Listener, error) {
		return (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	}
	silent, err := listen()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	gone, err := listen()
	if err != nil {
		t.Fatal(err)
	}
	_ = gone.Close()
	ours := answer(http.StatusOK, `{"status":"ok"}`)
	for _, tt := range []struct{ name, listen, status, message string }{
		{"ours", ours, setupcmd.CheckOK, "Guideway answers at http://" + ours},
		{"guideway on all addresses", strings.Replace(ours, "127.0.0.1", "0.0.0.0", 1), setupcmd.CheckOK, "Guideway answers at http://" + ours},
		{"none", gone.Addr().String(), setupcmd.CheckOK, "no server at "},
		{"another", answer(http.StatusNotFound, "what?"), setupcmd.CheckWarn, "is not Guideway"},
		{"a web page", answer(http.StatusOK, "<html>"), setupcmd.CheckWarn, "is not Guideway"},
		{"a server that does not answer", silent.Addr().String(), setupcmd.CheckWarn, "does not answer"},
		{"any port", "127.0.0.1:0", setupcmd.CheckOK, "not checked"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := setupcmd.CheckServer(t.Context(), &config.Config{Listen: tt.listen})
			if got.Status != tt.status || !strings.Contains(got.Message, tt.message) {
				t.Errorf("got %+v", got)
			}
			if (got.Fix != "") != (tt.status != setupcmd.CheckOK) {
				t.Errorf("unexpected fix %q", got.Fix)
			}
		})
	}
}

// TestDoctorReportsIsolation checks that doctor reports full isolation of scripts only on
// Linux.
func TestDoctorReportsIsolation(t *testing.T) {
	t.Parallel()
	for system, full := range map[string]bool{"linux": true, "darwin": false, "windows": false} {
		if got := setupcmd.SandboxText(system); strings.Contains(got, "full isolation") != full {
			t.Errorf("%s: %s", system, got)
		}
	}
}

// TestDoctorReportsSandbox checks that doctor warns of a sandbox without full isolation,
// and reports a sandbox that does not start as failed. Both reports have a fix.
func TestDoctorReportsSandbox(t *testing.T) {
	t.Parallel()
	ok := setupcmd.Check{Name: "script sandbox", Status: setupcmd.CheckOK}
	for _, tt := range []struct {
		missing string
		err     error
		status  string
	}{{"", nil, setupcmd.CheckOK}, {"filter system calls: operation not permitted", nil, setupcmd.CheckWarn}, {"", errors.New("no such file"), setupcmd.CheckFail}} {
		got := setupcmd.SandboxFound(ok, tt.missing, tt.err)
		if got.Status != tt.status || (got.Fix == "") != (tt.status == setupcmd.CheckOK) || !strings.Contains(got.Message, tt.missing) {
			t.Errorf("got %+v", got)
		}
	}
}

// TestDoctorWithoutGit checks that a missing git is a warning, or a failure if a source
// needs git.
func TestDoctorWithoutGit(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	cfg := &config.Config{}
	if got := setupcmd.CheckGit(t.Context(), cfg); got.Status != setupcmd.CheckWarn || !strings.Contains(got.Fix, "install git") {
		t.Errorf("git is missing and no source needs it: %+v", got)
	}
	cfg.Sources = []config.Source{{Name: "team", Git: "https://github.com/acme/workflows"}}
	if got := setupcmd.CheckGit(t.Context(), cfg); got.Status != setupcmd.CheckFail || !strings.Contains(got.Message, "git is required") {
		t.Errorf("git is missing and a source needs it: %+v", got)
	}
}
