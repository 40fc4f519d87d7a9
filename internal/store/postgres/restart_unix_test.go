//go:build unix

package postgres_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/guideway-dev/guideway/internal/store/postgres"
)

// testServer is a server that a test can stop.
type testServer struct {
	pgctl, dir, options string
	url                 string
}

// newTestServer starts a separate server that syncs to disk at each commit. If the test
// runs as root, the server runs as another user, because PostgreSQL refuses to run as root.
func newTestServer(t *testing.T) *testServer {
	t.Helper()
	serverURL(t) // skip the test if PostgreSQL tests are disabled
	bin := findBinaries(t)
	dir, err := os.MkdirTemp("", "guideway-postgres-")
	requireNoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if os.Getuid() == 0 {
		requireNoError(t, os.Chown(dir, nobodyUID, nobodyUID))
	}
	l := listenLocal(t)
	_, port, err := net.SplitHostPort(l.Addr().String())
	requireNoError(t, err)
	requireNoError(t, l.Close())
	o := &testServer{
		pgctl: filepath.Join(bin, "pg_ctl"), dir: dir, url: "postgres://guideway@127.0.0.1:" + port + "/postgres?sslmode=disable",
		options: "-c listen_addresses=127.0.0.1 -c synchronous_commit=on -p " + port + " -k " + dir,
	}
	o.runProgram(t, filepath.Join(bin, "initdb"), "-D", dir+"/data", "-A", "trust", "-U", "guideway", "-E", "UTF8", "--locale=C", "--no-sync")
	o.startServer(t)
	t.Cleanup(func() { o.runProgram(t, o.pgctl, "-D", dir+"/data", "-m", "immediate", "-w", "stop") })
	return o
}

// nobodyUID is the user of test servers.
const nobodyUID = 65534

// findBinaries returns the directory of the server's programs, or skips the test.
func findBinaries(t *testing.T) string {
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

// runProgram runs one of the server's programs.
func (o *testServer) runProgram(t *testing.T, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(context.Background(), name, args...)
	cmd.Dir = o.dir
	cmd.Env = []string{"PATH=" + filepath.Dir(name) + ":/usr/bin:/bin", "LC_ALL=C", "HOME=" + o.dir}
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobodyUID, Gid: nobodyUID}}
	}
	// Use a file and not a pipe for the output: the server inherits it and keeps it open.
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	requireNoError(t, err)
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Run(); err != nil {
		said, _ := os.ReadFile(log.Name())
		t.Fatalf("%s %v: %v\n%s", name, args, err, said)
	}
}

func (o *testServer) startServer(t *testing.T) {
	t.Helper()
	o.runProgram(t, o.pgctl, "-D", o.dir+"/data", "-w", "-l", o.dir+"/log", "-o", o.options, "start")
}

// TestServerRestarts checks that a server that stops immediately, as after a power loss,
// has all acknowledged commits after its restart, and that clients only notice a delay.
func TestServerRestarts(t *testing.T) {
	t.Parallel()
	o := newTestServer(t)
	const stores, clients, steps, restarts = 2, 4, 150, 3
	var both []*postgres.Store
	for range stores {
		both = append(both, openStore(t, postgres.Options{URL: o.url, Patience: testTimeout}))
	}
	for i := range clients {
		createTestRun(t, both[0], fmt.Sprintf("r_%d", i))
	}
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	told := make(chan error, 1)
	go func() { told <- followFeed(ctx, both[1], clients+clients*steps) }()
	done := make(chan acks)
	go func() { done <- appendAll(t, both[0], clients, steps) }()
	for i := range restarts {
		// The next restart waits until more commits are made.
		for want := (i + 1) * clients * steps / (restarts + 1); ; {
			last, err := both[1].Latest(ctx)
			requireNoError(t, err)
			if last >= int64(want) {
				break
			}
		}
		o.runProgram(t, o.pgctl, "-D", o.dir+"/data", "-m", "immediate", "-w", "stop")
		o.startServer(t)
	}
	all := <-done
	if there := all.checkJournal(t, both[1], o.url+"&search_path=guideway"); there != clients*steps {
		t.Errorf("%d commits are stored, %d were made", there, clients*steps)
	}
	requireNoError(t, <-told)
}
