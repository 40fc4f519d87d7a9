//go:build unix

package crash

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// nobodyUID is the user of servers if the tests run as root.
const nobodyUID = 65534

// Server is a separate PostgreSQL server that a test can stop and suspend.
type Server struct {
	// URL is the URL of its database postgres, as a superuser.
	URL string

	t                   testing.TB
	pgctl, dir, options string
}

// NewServer starts a server that syncs to disk at each commit. If the test runs as root, the
// server runs as another user, because PostgreSQL refuses to run as root. It skips the test if
// tests with PostgreSQL are off, or its programs are not installed.
func NewServer(t testing.TB) *Server {
	t.Helper()
	if os.Getenv("GUIDEWAY_TEST_POSTGRES") == "" {
		t.Skip("GUIDEWAY_TEST_POSTGRES is not set")
	}
	bin := findServerPrograms(t)
	s := &Server{t: t, pgctl: filepath.Join(bin, "pg_ctl")}
	s.dir = s.MakeDir()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String()) // the address of a listener is valid
	_ = l.Close()
	s.URL = "postgres://guideway@127.0.0.1:" + port + "/postgres?sslmode=disable"
	s.options = "-c listen_addresses=127.0.0.1 -c synchronous_commit=on -p " + port + " -k " + s.dir
	s.run(filepath.Join(bin, "initdb"), "-D", s.dir+"/data", "-A", "trust", "-U", "guideway", "-E", "UTF8", "--locale=C", "--no-sync")
	s.Start()
	t.Cleanup(func() { s.Stop("immediate") })
	return s
}

// MakeDir returns an empty directory of the server's user, which is removed after the test.
func (s *Server) MakeDir() string {
	s.t.Helper()
	dir, err := os.MkdirTemp("", "guideway-postgres-")
	if err == nil && os.Getuid() == 0 {
		err = os.Chown(dir, nobodyUID, nobodyUID)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// findServerPrograms returns the directory of the server's programs, or skips the test.
func findServerPrograms(t testing.TB) string {
	t.Helper()
	dirs, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	if found, err := exec.LookPath("initdb"); err == nil {
		if found, err = filepath.EvalSymlinks(found); err == nil {
			dirs = append(dirs, filepath.Dir(found))
		}
	}
	i := slices.IndexFunc(dirs, func(dir string) bool {
		_, err := os.Stat(filepath.Join(dir, "initdb"))
		return err == nil
	})
	if i < 0 {
		t.Skip("the programs of a PostgreSQL server are not installed")
	}
	return dirs[i]
}

// run runs one of the server's programs.
func (s *Server) run(name string, args ...string) {
	s.t.Helper()
	cmd := exec.CommandContext(context.Background(), name, args...)
	cmd.Dir = s.dir
	cmd.Env = []string{"PATH=" + filepath.Dir(name) + ":/usr/bin:/bin", "LC_ALL=C", "HOME=" + s.dir}
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobodyUID, Gid: nobodyUID}}
	}
	// Use a file and not a pipe for the output: the server inherits it and keeps it open.
	log, err := os.Create(filepath.Join(s.t.TempDir(), "log"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Run(); err != nil {
		said, _ := os.ReadFile(log.Name())
		s.t.Fatalf("%s %v: %v\n%s", name, args, err, said)
	}
}

// Start starts the server after Stop, and waits until it accepts connections.
func (s *Server) Start() {
	s.t.Helper()
	s.run(s.pgctl, "-D", s.dir+"/data", "-w", "-l", s.dir+"/log", "-o", s.options, "start")
}

// Stop stops the server in a mode of pg_ctl: fast, or immediate as after a power loss.
func (s *Server) Stop(mode string) {
	s.t.Helper()
	s.run(s.pgctl, "-D", s.dir+"/data", "-m", mode, "-w", "stop")
}

// Signal sends a signal to all processes of the server. It skips the test if the processes
// cannot be listed.
func (s *Server) Signal(sig syscall.Signal) {
	s.t.Helper()
	file, err := os.ReadFile(s.dir + "/data/postmaster.pid")
	if err != nil {
		s.t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(file), "\n")
	main, err := strconv.Atoi(first)
	if err != nil {
		s.t.Fatal(err)
	}
	out, err := exec.CommandContext(context.Background(), "ps", "-A", "-o", "pid=,ppid=").Output()
	if err != nil {
		s.t.Skipf("the processes of the server cannot be listed: %v", err)
	}
	_ = syscall.Kill(main, sig) // before the others: it starts no more of them
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		if len(fields) == 2 && fields[1] == first {
			pid, _ := strconv.Atoi(fields[0])
			_ = syscall.Kill(pid, sig) // it may have ended
		}
	}
}
