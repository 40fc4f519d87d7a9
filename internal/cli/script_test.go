package cli

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/gateway/upstream/upstreamtest"
	"github.com/rogpeppe/go-internal/testscript"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "script-worker" {
		os.Exit(Main(os.Args[1:], app.NewSystemHost())) // commands in the test process start this binary as their script worker
	}
	if modes, ok := os.LookupEnv(upstreamtest.Variable); ok {
		serveUpstream(modes)
		return
	}
	testscript.Main(m, map[string]func(){
		"guideway": func() { os.Exit(Main(os.Args[1:], newProcessHost())) },
		"curl": func() {
			if err := runCurl(os.Args[1:]); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
		},
	})
}

// clockVariable names a file with the duration by which the clock of a process is ahead.
const clockVariable = "TEST_CLOCK_FILE"

// newProcessHost returns the host of a process that a test started, with the clock that the
// test sets.
func newProcessHost() app.Host {
	host := app.NewSystemHost()
	if file := os.Getenv(clockVariable); file != "" {
		host.Now = func() time.Time {
			text, _ := os.ReadFile(file) // the file does not exist if the test does not move the clock
			ahead, _ := time.ParseDuration(string(text))
			return time.Now().Add(ahead)
		}
	}
	return host
}

// serveUpstream runs the test binary as an upstream.
func serveUpstream(modes string) {
	server := upstreamtest.New(os.Stdout, modes)
	server.Environ = os.Environ()
	server.Count = func() {
		file, err := os.OpenFile(os.Getenv(upstreamtest.CountFile), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			_, _ = file.WriteString("once\n")
			_ = file.Close()
		}
	}
	server.Crash = func() { os.Exit(3) }
	_ = server.Serve(os.Stdin)
}

// TestScripts runs the scripts in testdata/script, which has a directory for each command
// group.
func TestScripts(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts hundreds of processes, which takes minutes under the race detector")
	}
	dirs, err := filepath.Glob("testdata/script/*")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("the scripts: %q, %v", dirs, err)
	}
	for _, dir := range dirs {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			testscript.Run(t, scriptParams(dir))
		})
	}
}

// scriptParams returns the commands and the environment of the scripts in dir.
func scriptParams(dir string) testscript.Params {
	return testscript.Params{
		Dir:                 dir,
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"damage": damageStore,
			"action": runActionStep,
			"mcp": func(ts *testscript.TestScript, neg bool, args []string) {
				ts.Value(clientsKey{}).(*clients).runCommand(ts, neg, args)
			},
		},
		Setup: func(env *testscript.Env) error {
			env.Values[clientsKey{}] = &clients{open: map[string]*client{}}
			return newHome(env)
		},
	}
}

// newHome sets an empty home directory for a script, without the user's settings.
func newHome(env *testscript.Env) error {
	home := filepath.Join(env.WorkDir, "home")
	for name, dir := range map[string]string{
		"HOME": "", "USERPROFILE": "", "XDG_CONFIG_HOME": "config", "XDG_DATA_HOME": "data", "XDG_CACHE_HOME": "cache",
		"XDG_STATE_HOME": "state", "APPDATA": "config", "LOCALAPPDATA": "data",
	} {
		env.Setenv(name, filepath.Join(home, dir))
	}
	env.Setenv("GUIDEWAY_LISTEN", "127.0.0.1:1") // an address without a listener
	return os.MkdirAll(home, 0o755)
}

// damageStore implements the command "damage FILE TEXT": it overwrites the pages of a store
// that contain a text, like a failing disk.
func damageStore(ts *testscript.TestScript, _ bool, args []string) {
	const page = 4096
	path := ts.MkAbs(args[0])
	data, err := os.ReadFile(path)
	ts.Check(err)
	damaged := 0
	for at := 0; at+page <= len(data); at += page {
		if bytes.Contains(data[at:at+page], []byte(args[1])) {
			copy(data[at:at+page], bytes.Repeat([]byte("damaged!"), page/8))
			damaged++
		}
	}
	if damaged == 0 {
		ts.Fatalf("%s does not have %q", args[0], args[1])
	}
	ts.Check(os.WriteFile(path, data, 0o600))
}
