package runner_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/guideway-dev/guideway/internal/evidence/execute/runner"
	"github.com/guideway-dev/guideway/internal/platform/shortid"
)

// shell returns the specification of a script.
func shell(t *testing.T, script string) runner.Spec {
	t.Helper()
	marker := "GUIDEWAY_CHECK=" + shortid.Token("")
	return runner.Spec{
		Path: "/bin/sh", Argv: []string{"sh", "-c", script}, Dir: t.TempDir(), Env: []string{"PATH=" + os.Getenv("PATH"), marker}, Marker: marker,
		MaxProcesses: 100, Grace: 100 * time.Millisecond,
	}
}

// stopper stops a command when its output contains a text.
type stopper struct {
	written bytes.Buffer
	text    string
	stop    func()
}

func (s *stopper) Write(p []byte) (int, error) {
	n, err := s.written.Write(p)
	if strings.Contains(s.written.String(), s.text) {
		s.stop()
	}
	return n, err
}

// survivors returns the processes that have a text in their command line.
func survivors(t *testing.T, text string) (found []string) {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		if content, err := os.ReadFile(line); err == nil && strings.Contains(string(content), text) {
			found = append(found, line+" "+string(content))
		}
	}
	return found
}

// TestRun checks the report of commands that end.
func TestRun(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]struct {
		report runner.Report
		output string
	}{
		"echo out; echo err >&2":                 {runner.Report{Exited: true}, "out\nerr\n"},
		"exit 7":                                 {runner.Report{Exited: true, ExitCode: 7}, ""},
		"kill -9 $$":                             {runner.Report{ExitCode: -1, Signal: "SIGKILL"}, ""},
		"cat; tty -s || echo no terminal":        {runner.Report{Exited: true}, "no terminal\n"},
		"ls /proc/self/fd | wc -l":               {runner.Report{Exited: true}, "4\n"}, // the three standard streams, and the open directory
		"ulimit -c; env | grep -v ^PWD= | wc -l": {runner.Report{Exited: true}, "0\n2\n"},
	} {
		var out bytes.Buffer
		got, err := runner.Run(t.Context(), shell(t, script), &out)
		if err != nil || got != want.report || out.String() != want.output {
			t.Errorf("%s: %+v, %v, %q", script, got, err, out.String())
		}
	}
	spec := shell(t, "")
	spec.Path = "/nowhere/program"
	if got, err := runner.Run(t.Context(), spec, &bytes.Buffer{}); err != nil || !strings.Contains(got.Failure, "no such file") {
		t.Errorf("a program that does not exist: %+v, %v", got, err)
	}
}

// TestContainment runs commands that try to outlive their end. Each writes "ready" when all
// its processes exist; they are known by a number in their command line.
func TestContainment(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"hangs":                  `echo ready; exec sleep NUMBER`,
		"ignores signals":        `trap '' TERM INT HUP; echo ready; while :; do sleep NUMBER; done`,
		"forks":                  `for i in 1 2 3; do sleep NUMBER & done; echo ready; wait`,
		"detaches":               `setsid sleep NUMBER & sleep 0.05; echo ready; sleep NUMBER`,
		"detaches twice":         `(setsid sh -c 'sleep NUMBER & sleep NUMBER' &) ; sleep 0.05; echo ready; sleep NUMBER`,
		"removes its marker":     `(env -i setsid sh -c 'exec sleep NUMBER' &) ; sleep 0.05; echo ready; sleep NUMBER`,
		"stops itself":           `sleep NUMBER & echo ready; exec sh -c 'kill -STOP $$'`,
		"kills its session":      `(setsid sh -c 'sleep NUMBER' &) ; sleep 0.05; echo ready; kill -TERM 0; sleep NUMBER`,
		"closes its output":      `(setsid sh -c 'exec >/dev/null 2>&1; sleep NUMBER' &) ; sleep 0.05; echo ready; exec >&- 2>&-; sleep NUMBER`,
		"moves to another group": `set -m; sleep NUMBER & sleep NUMBER & echo ready; wait`,
	} {
		for _, ends := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, ends: %t", name, ends), func(t *testing.T) {
				t.Parallel()
				number := strconv.FormatInt(1e9+time.Now().UnixNano()%1e9, 10)
				text := strings.ReplaceAll(script, "NUMBER", number)
				if ends { // the first process ends, and the others remain
					text = "(" + text + ") & while ! [ -e done ]; do sleep 0.01; done; exit 3"
				}
				spec := shell(t, text)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				stop := cancel
				if ends {
					stop = func() { _ = os.WriteFile(filepath.Join(spec.Dir, "done"), nil, 0o600) }
				}
				out := &stopper{text: "ready", stop: stop}
				got, err := runner.Run(ctx, spec, out)
				if err != nil || !strings.Contains(out.written.String(), "ready") || got.Left > 0 || got.Failure != "" {
					t.Errorf("%+v, %v, %q", got, err, out.written.String())
				}
				if ends && (got.ExitCode != 3 && got.Signal != "SIGTERM" || got.Killed == 0) {
					t.Errorf("the report does not have the exit code and the killed processes: %+v", got)
				}
				if left := survivors(t, number); left != nil {
					t.Errorf("processes are left: %q", left)
				}
			})
		}
	}
}

// TestKilledHelper checks a command that kills the process that contains it.
func TestKilledHelper(t *testing.T) {
	t.Parallel()
	number := strconv.FormatInt(2e9+time.Now().UnixNano()%1e9, 10)
	spec := shell(t, `setsid sleep `+number+` & kill -9 $PPID; sleep `+number)
	got, err := runner.Run(t.Context(), spec, &bytes.Buffer{})
	if err != nil || got.Exited || !strings.Contains(got.Failure, "was killed") {
		t.Errorf("%+v, %v", got, err)
	}
	if left := survivors(t, number); left != nil {
		t.Errorf("processes are left: %q", left)
	}
}

// TestForgedReport checks that a command cannot write the report of its end.
func TestForgedReport(t *testing.T) {
	t.Parallel()
	if os.Getuid() == 0 {
		t.Skip("root can write to every process")
	}
	out := &bytes.Buffer{}
	got, err := runner.Run(t.Context(), shell(t, `echo x >/proc/$PPID/fd/3; exit 3`), out)
	if err != nil || got.ExitCode != 3 || !strings.Contains(out.String(), "denied") {
		t.Errorf("%+v, %v, %s", got, err, out)
	}
}

// TestForkBomb checks the limit of processes. The bomb has at most 255 processes, so that it
// is harmless if the limit does not work.
func TestForkBomb(t *testing.T) {
	t.Parallel()
	number := strconv.FormatInt(3e9+time.Now().UnixNano()%1e9, 10)
	spec := shell(t, "exec ./bomb 7")
	script := `#!/bin/sh
[ "$1" -gt 0 ] || exec sleep ` + number + `
setsid ./bomb $(($1 - 1)) ` + number + ` &
./bomb $(($1 - 1)) ` + number + ` &
wait
`
	if err := os.WriteFile(filepath.Join(spec.Dir, "bomb"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	spec.MaxProcesses = 30
	got, err := runner.Run(t.Context(), spec, &bytes.Buffer{})
	if err != nil || !got.TooMany || got.Exited || got.Left > 0 {
		t.Errorf("%+v, %v", got, err)
	}
	if left := survivors(t, number); left != nil {
		t.Errorf("%d processes are left: %q", len(left), left[:1])
	}
}

// limited is a writer that fails after this number of bytes.
type limited int

var errFull = errors.New("full")

func (l *limited) Write(p []byte) (int, error) {
	if *l -= limited(len(p)); *l < 0 {
		return 0, errFull
	}
	return len(p), nil
}

// TestFlood checks a command whose output is refused.
func TestFlood(t *testing.T) {
	t.Parallel()
	out := limited(1 << 20)
	if _, err := runner.Run(t.Context(), shell(t, "yes"), &out); !errors.Is(err, errFull) {
		t.Errorf("%v", err)
	}
}

// TestDeadCaller checks that a command ends with the process that runs it.
func TestDeadCaller(t *testing.T) {
	t.Parallel()
	number := strconv.FormatInt(4e9+time.Now().UnixNano()%1e9, 10)
	script := filepath.Join(t.TempDir(), "ready")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	caller := exec.CommandContext(t.Context(), self, "-test.run", "^TestCallerThatDies$")
	caller.Env = append(os.Environ(), "CALLER_SCRIPT=setsid sleep "+number+" & touch "+script+"; sleep "+number)
	if err := caller.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { _, err := os.Stat(script); return err == nil })
	_ = caller.Process.Kill()
	_ = caller.Wait()
	waitFor(t, func() bool { return survivors(t, number) == nil })
}

// waitFor waits until a condition holds.
func waitFor(t *testing.T, holds func() bool) {
	t.Helper()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for !holds() {
		select {
		case <-ticker.C:
		case <-t.Context().Done():
			t.Fatal("the test ended")
		}
	}
}

// TestCallerThatDies is the process that TestDeadCaller kills.
func TestCallerThatDies(t *testing.T) {
	script := os.Getenv("CALLER_SCRIPT")
	if script == "" {
		t.Skip("run by TestDeadCaller")
	}
	spec := shell(t, script)
	spec.Dir = "/"
	_, _ = runner.Run(t.Context(), spec, &bytes.Buffer{})
}

// TestSandbox checks what a sandboxed command can do.
func TestSandbox(t *testing.T) {
	t.Parallel()
	if err := runner.CheckSandbox(false); err != nil {
		t.Skip(err)
	}
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, []byte("text"), 0o666); err != nil {
		t.Fatal(err)
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	port := strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
	sleeper := exec.CommandContext(t.Context(), "sleep", "1000")
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sleeper.Process.Kill(); _ = sleeper.Wait() }()
	connect := `perl -MIO::Socket::INET -e 'exit(IO::Socket::INET->new(PeerAddr=>"127.0.0.1:` + port + `",Timeout=>5) ? 0 : 1)'`
	own := `perl -MIO::Socket::INET -e '$l=IO::Socket::INET->new(Listen=>1,LocalAddr=>"127.0.0.1") or exit 1; exit(IO::Socket::INET->new(PeerAddr=>"127.0.0.1:".$l->sockport) ? 0 : 1)'`
	for script, allowed := range map[string]bool{
		"echo x >inside && mkdir dir && mv inside dir/ && rm -r dir": true,
		"echo x >/dev/null":                                true,
		"cat " + outside:                                   true,
		"echo x >" + outside:                               false,
		"rm " + outside:                                    false,
		"mkdir " + outside + ".d":                          false,
		"truncate -s 0 " + outside:                         false,
		"ln -s /etc/passwd " + outside + ".l":              false,
		"mv " + outside + " .":                             false,
		"ln " + outside + " inside-link":                   false,
		"sh -c 'setsid sh -c \"echo x >" + outside + "\"'": false,
		"kill -0 " + strconv.Itoa(sleeper.Process.Pid):     false,
		"kill -9 $PPID":                                    false,
		"unshare -rm mount -t tmpfs none /mnt":             false,
		connect:                                            false,
		own:                                                true,
	} {
		spec := shell(t, script)
		spec.Sandbox = &runner.Sandbox{Writable: []string{spec.Dir, "/dev/null", filepath.Join(spec.Dir, "missing")}}
		var out bytes.Buffer
		got, err := runner.Run(t.Context(), spec, &out)
		if err != nil || !got.Exited || (got.ExitCode == 0) != allowed {
			t.Errorf("%s: %+v, %v, %s", script, got, err, out.String())
		}
	}
	if text, err := os.ReadFile(outside); err != nil || string(text) != "text" {
		t.Errorf("the file outside is %q, %v", text, err)
	}
	spec := shell(t, connect)
	spec.Sandbox = &runner.Sandbox{Network: true}
	if got, err := runner.Run(t.Context(), spec, &bytes.Buffer{}); err != nil || got.ExitCode != 0 {
		t.Errorf("with the network: %+v, %v", got, err)
	}
}
