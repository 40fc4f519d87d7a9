package sandbox_test

import (
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"github.com/guideway-dev/guideway/internal/hooks/sandbox"
	"golang.org/x/sys/unix"
)

// withoutFilters makes the kernel refuse further filters of system calls.
func withoutFilters() {
	err := seccomp.LoadFilter(seccomp.Filter{
		NoNewPrivs: true, Flag: seccomp.FilterFlagTSync,
		Policy: seccomp.Policy{
			DefaultAction: seccomp.ActionAllow,
			Syscalls:      []seccomp.SyscallGroup{{Action: seccomp.ActionErrno | seccomp.Action(unix.EPERM), Names: []string{"seccomp"}}},
		},
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// logLines is a log writer that is safe for concurrent reads.
type logLines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logLines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logLines) countLines(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), what)
}

// If the system call filter is not available, scripts run, and this is logged once for
// all workers.
func TestMissingFilterIsLogged(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for command, want := range map[string]int{"script-worker": 0, "unfiltered-worker": 1} {
		var log logLines
		p, err := sandbox.NewPool(sandbox.Options{
			Command: []string{self, command}, Workers: 2, Log: slog.New(slog.NewTextHandler(&log, nil)),
		})
		if err != nil {
			t.Fatal(err)
		}
		// The worker of an endless script is replaced.
		if _, err := p.Run(t.Context(), sandbox.Call{
			Module: sandbox.Module{Name: "hook.js", Source: "for (;;) {}"}, Limits: sandbox.Limits{Wall: 50e6},
		}); err == nil {
			t.Error("the endless script ended without an error")
		}
		if got := runValue(t, p, newCall("return 7")); got != "7" {
			t.Errorf("%s: got %s", command, got)
		}
		if said := log.countLines("without the system call filter"); said != want || (p.Missing() != "") != (want == 1) {
			t.Errorf("%s: said %d times, missing %q", command, said, p.Missing())
		}
		if err := p.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
