//go:build linux

package crashtest

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/guideway-dev/guideway/internal/testutil/crash"
)

// fault is a kind of outage of a database server.
type fault struct {
	name string
	// logged is a part of the warning of a worker during the outage.
	logged string
	// prepare returns the URL of the workers; nil means the URL of the server.
	prepare func(t *testing.T, s *crash.Server) string
	// strike causes the outage, and heal ends it.
	strike, heal func(t *testing.T, s *crash.Server)
}

// faults returns the kinds of outages.
func faults() []fault {
	return []fault{
		{
			name: "paused", logged: "timeout",
			strike: func(_ *testing.T, s *crash.Server) { s.Signal(syscall.SIGSTOP) },
			heal:   func(_ *testing.T, s *crash.Server) { s.Signal(syscall.SIGCONT) },
		},
		{
			name: "stopped", logged: "connection refused",
			strike: func(_ *testing.T, s *crash.Server) { s.Stop("fast") },
			heal:   func(_ *testing.T, s *crash.Server) { s.Start() },
		},
		{
			name: "killed", logged: "connection refused",
			strike: func(_ *testing.T, s *crash.Server) { s.Stop("immediate") },
			heal:   func(_ *testing.T, s *crash.Server) { s.Start() },
		},
		{
			// After the outage, the workers share a few connections.
			name: "no connections", logged: "too many connections",
			prepare: func(t *testing.T, s *crash.Server) string {
				t.Helper()
				crash.Exec(t, s.URL, "create role app login")
				crash.Exec(t, s.URL, "create database app owner app")
				return databaseURL(t, s, "app", "app")
			},
			strike: func(t *testing.T, s *crash.Server) {
				t.Helper()
				crash.Exec(t, s.URL, "alter role app connection limit 0")
				crash.Exec(t, s.URL, "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'app'")
			},
			heal: func(t *testing.T, s *crash.Server) {
				t.Helper()
				crash.Exec(t, s.URL, "alter role app connection limit 8")
			},
		},
		{
			name: "full disk", logged: "No space left on device",
			prepare: func(t *testing.T, s *crash.Server) string {
				t.Helper()
				dir := mountSmall(t, s)
				crash.Exec(t, s.URL, "create tablespace small location '"+dir+"'")
				crash.Exec(t, s.URL, "create database app tablespace small")
				return databaseURL(t, s, "app", "guideway")
			},
			strike: func(t *testing.T, s *crash.Server) {
				t.Helper()
				crash.Exec(t, databaseURL(t, s, "app", "guideway"), `create table ballast (b text);
					do $$ begin loop
						begin insert into ballast select string_agg(md5(random()::text), '') from generate_series(1, 100);
						exception when disk_full then exit; end;
					end loop; end $$`)
			},
			heal: func(t *testing.T, s *crash.Server) {
				t.Helper()
				crash.Exec(t, databaseURL(t, s, "app", "guideway"), "drop table ballast")
			},
		},
	}
}

// databaseURL returns the URL of a database of a server for a user.
func databaseURL(t *testing.T, s *crash.Server, name, user string) string {
	t.Helper()
	at, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	at.Path, at.User = "/"+name, url.User(user)
	return at.String()
}

// mountSmall mounts a small file system for a server, or skips the test.
func mountSmall(t *testing.T, s *crash.Server) string {
	t.Helper()
	dir := s.MakeDir()
	info, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	owner := info.Sys().(*syscall.Stat_t) //nolint:forcetypeassert // on Linux
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d,mode=0700,uid=%d,gid=%d", 64<<20, owner.Uid, owner.Gid)); err != nil {
		t.Skipf("a small file system cannot be mounted: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// TestDatabaseFaults takes the database away from two workers for longer than an instance may
// be silent, while they drive runs: the server is suspended, stopped or killed, accepts no
// connection, or its disk is full. No run is lost or stranded, each answer is recorded, and no
// call is repeated. GUIDEWAY_CRASH_OUTAGES sets the number of outages of each kind: the first
// one is while the models answer, the others are at a random request.
func TestDatabaseFaults(t *testing.T) {
	t.Parallel()
	crash.SkipIfShort(t)
	seeds := crash.Seeds(t)
	for _, f := range faults() {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			s, o := crash.NewServer(t), newFakeServers(t)
			p := location{Dir: crash.Dir(t), Outside: o.URL, Postgres: s.URL, Serves: true}
			if f.prepare != nil {
				p.Postgres = f.prepare(t, s)
			}
			workers := []*worker{startWorker(t, p).MustOpen(), startWorker(t, p).MustOpen()}
			random := rand.New(rand.NewPCG(seeds[len(seeds)-1], 20))
			for n := range crash.Amount(t, "GUIDEWAY_CRASH_OUTAGES", 1, 1) {
				runs := startHeld(t, o, workers[n%2], p)
				if n > 0 {
					close(o.held)
					for range random.IntN(len(runs) * (requests - 1)) {
						<-o.arrived
					}
				}
				f.strike(t, s)
				if n == 0 {
					close(o.held)
				}
				<-time.After(12 * time.Second)
				f.heal(t, s)
				runs.finish(t, workers[1-n%2])
				runs.checkCalledOnce()
			}
			var log strings.Builder
			for _, w := range workers {
				w.Shutdown()
				log.WriteString(w.Stderr())
			}
			if !strings.Contains(log.String(), f.logged) {
				t.Errorf("no worker noticed the outage: %s", &log)
			}
		})
	}
}
