package worker

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	scriptwire "github.com/guideway-dev/guideway/internal/hooks/sandbox/protocol"
	"golang.org/x/sys/unix"
)

// TestMain is also the main function of the confined process that tries to escape.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "try-to-get-out" {
		tryToEscape()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// tryToEscape prints each forbidden action that the process may do, and each allowed one
// that it may not.
func tryToEscape() {
	if _, err := confineProcess(scriptwire.Setup{Memory: 16 << 20, CPUSeconds: 10}); err != nil {
		fmt.Fprintln(os.Stdout, "confine:", err)
		return
	}
	for name, try := range map[string]func() error{
		"open a file":    func() error { _, err := os.ReadFile("/etc/hostname"); return err },
		"create a file":  func() error { return os.WriteFile("/tmp/guideway-escaped", nil, 0o600) },
		"list files":     func() error { _, err := os.ReadDir("/"); return err },
		"make a socket":  func() error { _, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0); return err },
		"make a pair":    func() error { _, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0); return err },
		"listen":         func() error { _, err := net.Listen("tcp", "127.0.0.1:0"); return err }, //nolint:noctx // it must fail
		"run a program":  func() error { return exec.Command("/bin/true").Run() },                 //nolint:noctx // it must fail
		"become one":     func() error { return syscall.Exec("/bin/true", []string{"true"}, nil) },
		"signal others":  func() error { return syscall.Kill(os.Getppid(), 0) },
		"trace itself":   func() error { return syscall.PtraceAttach(os.Getppid()) },
		"move":           func() error { return syscall.Chdir("/tmp") },
		"remove a file":  func() error { return os.Remove("/tmp/guideway-not-there") },
		"raise a limit":  func() error { return syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 64, Max: 64}) },
		"change its uid": func() error { return syscall.Setuid(65534) },

		"signal a thread of another process": func() error { return unix.Tgkill(os.Getppid(), os.Getppid(), 0) },
		"signal the group":                   func() error { return unix.Tgkill(-1, os.Getppid(), 0) },
		"direct signals at another process":  func() error { return fcntl(unix.F_SETOWN, os.Getppid()) },
		"direct signals at a group":          func() error { return fcntl(unix.F_SETOWN_EX, 0) },
		"choose the directed signal":         func() error { return fcntl(unix.F_SETSIG, int(unix.SIGKILL)) },
		"take a lease":                       func() error { return fcntl(unix.F_SETLEASE, unix.F_RDLCK) },
		"watch a directory":                  func() error { return fcntl(unix.F_NOTIFY, 0) },
		"lock a file":                        func() error { return fcntl(unix.F_SETLK, 0) },
	} {
		if err := try(); !errors.Is(err, syscall.EPERM) && !errors.Is(err, os.ErrPermission) {
			fmt.Fprintf(os.Stdout, "%s: %v\n", name, err)
		}
	}
	for name, try := range map[string]func() error{
		"signal its own thread":  func() error { return unix.Tgkill(os.Getpid(), unix.Gettid(), 0) },
		"read descriptor flags":  func() error { return fcntl(unix.F_GETFD, 0) },
		"write descriptor flags": func() error { return fcntl(unix.F_SETFD, unix.FD_CLOEXEC) },
		"read status flags":      func() error { return fcntl(unix.F_GETFL, 0) },
		"copy a descriptor":      func() error { return fcntl(unix.F_DUPFD_CLOEXEC, 0) },
	} {
		if err := try(); err != nil {
			fmt.Fprintf(os.Stdout, "%s: %v\n", name, err)
		}
	}
	fmt.Fprintln(os.Stdout, "tried all")
}

// fcntl executes a command on standard input.
func fcntl(command, argument int) error {
	_, err := unix.FcntlInt(0, command, argument)
	return err
}

// Code that escapes from the engine cannot access files, the network or other processes.
func TestConfinedProcess(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), self, "try-to-get-out").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if got := strings.TrimSpace(string(out)); got != "tried all" {
		t.Errorf("forbidden actions succeeded:\n%s", got)
	}
}
