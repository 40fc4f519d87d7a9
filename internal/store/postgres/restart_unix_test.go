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

// ownServer is a server that a test may stop.
type ownServer struct {
	pgctl, dir, options string
	url                 string
}

// newOwnServer makes a server of the test's own, which waits for its disk at
// each commit. As root it runs as nobody: it refuses to be root's.
func newOwnServer(t *testing.T) *ownServer {
	t.Helper()
	server(t) // PostgreSQL is to be tested with at all
	bin := binaries(t)
	dir, err := os.MkdirTemp("", "guideway-postgres-")
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if os.Getuid() == 0 {
		must(t, os.Chown(dir, nobody, nobody))
	}
	l := listen(t)
	_, port, err := net.SplitHostPort(l.Addr().String())
	must(t, err)
	must(t, l.Close())
	o := &ownServer{
		pgctl: filepath.Join(bin, "pg_ctl"), dir: dir, url: "postgres://guideway@127.0.0.1:" + port + "/postgres?sslmode=disable",
		options: "-c listen_addresses=127.0.0.1 -c synchronous_commit=on -p " + port + " -k " + dir,
	}
	o.command(t, filepath.Join(bin, "initdb"), "-D", dir+"/data", "-A", "trust", "-U", "guideway", "-E", "UTF8", "--locale=C", "--no-sync")
	o.start(t)
	t.Cleanup(func() { o.command(t, o.pgctl, "-D", dir+"/data", "-m", "immediate", "-w", "stop") })
	return o
}

// nobody is the user that servers of tests run as.
const nobody = 65534

// binaries gives the directory of the server's programs, or skips the test.
func binaries(t *testing.T) string {
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
		t.Skip("the programs of a PostgreSQL server are not installed here")
	}
	return dirs[i]
}

// command runs a program of the server's.
func (o *ownServer) command(t *testing.T, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(context.Background(), name, args...)
	cmd.Dir = o.dir
	cmd.Env = []string{"PATH=" + filepath.Dir(name) + ":/usr/bin:/bin", "LC_ALL=C", "HOME=" + o.dir}
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	// The server lives on with what it inherits: a pipe would never end.
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	must(t, err)
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Run(); err != nil {
		said, _ := os.ReadFile(log.Name())
		t.Fatalf("%s %v: %v\n%s", name, args, err, said)
	}
}

func (o *ownServer) start(t *testing.T) {
	t.Helper()
	o.command(t, o.pgctl, "-D", o.dir+"/data", "-w", "-l", o.dir+"/log", "-o", o.options, "start")
}

// A server that ends at once, as by a loss of power, and comes back has all that
// it has acknowledged; the clients notice nothing but the time that it took.
func TestServerRestarts(t *testing.T) {
	t.Parallel()
	o := newOwnServer(t)
	const stores, clients, steps, restarts = 2, 4, 150, 3
	var both []*postgres.Store
	for range stores {
		both = append(both, open(t, postgres.Options{URL: o.url, Patience: patience}))
	}
	for i := range clients {
		create(t, both[0], fmt.Sprintf("r_%d", i))
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	told := make(chan error, 1)
	go func() { told <- followFeed(ctx, both[1], clients+clients*steps) }()
	done := make(chan acks)
	go func() { done <- appendAll(t, both[0], clients, steps) }()
	for i := range restarts {
		// Each restart waits until some more commits are there.
		for want := (i + 1) * clients * steps / (restarts + 1); ; {
			last, err := both[1].Latest(ctx)
			must(t, err)
			if last >= int64(want) {
				break
			}
		}
		o.command(t, o.pgctl, "-D", o.dir+"/data", "-m", "immediate", "-w", "stop")
		o.start(t)
	}
	all := <-done
	if there := all.wantKept(t, both[1], o.url+"&search_path=guideway"); there != clients*steps {
		t.Errorf("%d commits are there, %d were made", there, clients*steps)
	}
	must(t, <-told)
}
