package cli

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	setupcmd "github.com/guideway-dev/guideway/internal/cli/setup"
)

// ownerTest runs the program as root and as the user that owns the home directory.
type ownerTest struct {
	*testing.T

	program, home string
}

const homeOwner = 54321

func newOwnerTest(t *testing.T) *ownerTest {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can start a process of another user")
	}
	o := &ownerTest{t, copyProgram(t), t.TempDir()}
	if err := os.Chown(o.home, homeOwner, homeOwner); err != nil {
		t.Fatal(err)
	}
	return o
}

// runAs runs a command as a user and returns its output.
func (o *ownerTest) runAs(uid uint32, input string, args ...string) (string, error) {
	o.Helper()
	cmd := o.command(uid, args...)
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (o *ownerTest) command(uid uint32, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(o.Context(), o.program, args...)
	cmd.Env, cmd.Dir = []string{"HOME=" + o.home, "NO_COLOR=1", "PATH=" + os.Getenv("PATH")}, o.home
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	return cmd
}

// mustRunAs is runAs for a command that must succeed.
func (o *ownerTest) mustRunAs(uid uint32, input string, args ...string) {
	o.Helper()
	if out, err := o.runAs(uid, input, args...); err != nil {
		o.Errorf("guideway %v as %d: %v\n%s", args, uid, err, out)
	}
}

// foreignFiles returns the files below the home directory that do not belong to its owner. It
// leaves out the temporary files of blobs: a running server changes their owner before it renames
// them, and this function can see them earlier.
func (o *ownerTest) foreignFiles() (foreign []string) {
	o.Helper()
	files := 0
	err := filepath.WalkDir(o.home, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) { // a server has renamed its temporary file
			return nil
		}
		if err != nil {
			return err
		}
		if strings.HasPrefix(entry.Name(), ".write-") {
			return nil
		}
		files++
		if info.Sys().(*syscall.Stat_t).Uid != homeOwner {
			foreign = append(foreign, strings.TrimPrefix(path, o.home))
		}
		return nil
	})
	if err != nil || files < 3 {
		o.Fatal(files, err)
	}
	return foreign
}

// useEverything has commands write files of every kind.
func (o *ownerTest) useEverything(uid uint32) {
	o.Helper()
	messages := []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
	}
	for i, call := range []string{
		`{"name":"workflow_start","arguments":{"workflowId":"coding-task","goal":"a goal"}}`,
		`{"name":"workrail_create_session","arguments":{"workflowId":"coding-task","sessionId":"one"}}`,
		`{"name":"workflow_checkpoint_save","arguments":{"sessionId":"one","context":{"a":"b"}}}`,
	} {
		messages = append(messages, `{"jsonrpc":"2.0","id":`+strconv.Itoa(i+2)+`,"method":"tools/call","params":`+call+`}`)
	}
	o.mustRunAs(uid, strings.Join(messages, "\n")+"\n", "mcp", "--toolsets", "steps,runs,sessions,context,gateway")
	o.mustRunAs(uid, "", "machine", "run", "code-and-review", "--demo")
	o.mustRunAs(uid, "", "upstream", "add", "--replace", "files", "--", "true")
	o.mustRunAs(uid, "", "runs", "list")
	o.mustRunAs(uid, "", "requests", "list")
	o.mustRunAs(uid, "", "checkpoint", "list")
	o.writeOwnFiles(uid)
	archive := filepath.Join(o.home, fmt.Sprint("backup-", uid, ".zip"))
	o.mustRunAs(uid, "", "backup", archive)
	o.mustRunAs(uid, "", "restore", archive, "--data-dir", filepath.Join(o.home, fmt.Sprint("restored-", uid)))
	_, _ = o.runAs(uid, "", "doctor")
}

// writeOwnFiles has commands write files that the user names, and files of the project and
// of the configuration directory.
func (o *ownerTest) writeOwnFiles(uid uint32) {
	o.Helper()
	module := fmt.Sprintf(`{"id":"module-%d","name":"Module %d","script":"context.a = 1;"}`, uid, uid)
	for range 2 { // the second time the files exist
		o.mustRunAs(uid, module, "hooks", "import", "-", "--force")
		o.mustRunAs(uid, "", "hooks", "import", "--template", "default-argument", "--id", fmt.Sprint("copy-", uid), "--force")
		o.mustRunAs(uid, "", "init")
		o.mustRunAs(uid, "", "init", "--dialect", "machines")
		o.mustRunAs(uid, `{"a":"b"}`, "checkpoint", "save", "-", "--session", "exported")
		o.mustRunAs(uid, "", "checkpoint", "export", "--session", "exported", "--output", fmt.Sprint("session-", uid, ".json"), "--force")
		o.mustRunAs(uid, "", "runs", "export", "--salvage", filepath.Join("rescued", strconv.Itoa(int(uid))), "--force")
		o.mustRunAs(uid, "", "machine", "run", "code-and-review", "--demo", "--record", fmt.Sprint("recording-", uid, ".json"))
	}
}

// Files that root creates in the directories of another user belong to that user, so that
// the user's own commands work afterwards.
func TestRootKeepsTheOwner(t *testing.T) {
	t.Parallel()
	o := newOwnerTest(t)
	o.useEverything(0)
	for _, path := range o.foreignFiles() {
		t.Errorf("%s does not belong to the owner of the directory", path)
	}
	o.useEverything(homeOwner)
	for _, uid := range []uint32{0, homeOwner} {
		o.checkWhileServing(uid)
	}
}

// readDoctorCheck returns a check of doctor, and the files that it reports below the home
// directory.
func (o *ownerTest) readDoctorCheck(name string) (c setupcmd.Check, files []string) {
	o.Helper()
	var answer struct {
		Checks []setupcmd.Check
	}
	text, _ := o.command(homeOwner, "doctor", "--json").Output()
	if err := json.Unmarshal(text, &answer); err != nil {
		o.Fatalf("%v: %s", err, text)
	}
	for _, c := range answer.Checks {
		if c.Name != name {
			continue
		}
		for _, d := range c.Diagnostics {
			files = append(files, strings.TrimPrefix(d.File, o.home+"/"))
		}
		if (c.Status != setupcmd.CheckOK) != (len(files) > 0) {
			o.Errorf("the check is %+v", c)
		}
		return c, files
	}
	o.Fatalf("there is no check of the %s", name)
	return c, nil
}

// TestDoctorChecksTheConfigDirectory checks that doctor reports the files of the
// configuration directory that the user cannot read, or that belong to another user and
// cannot be changed, with a command that repairs them. A read-only file of the user is not
// reported.
func TestDoctorChecksTheConfigDirectory(t *testing.T) {
	t.Parallel()
	o := newOwnerTest(t)
	o.mustRunAs(homeOwner, "", "upstream", "add", "files", "--", "true")
	o.mustRunAs(homeOwner, "", "hooks", "import", "--template", "default-argument", "--id", "own")
	const config = ".config/guideway"
	hooks := filepath.Join(config, "workflows/hooks")
	if err := os.Chmod(filepath.Join(o.home, hooks, "own.json"), 0o400); err != nil {
		t.Fatal(err)
	}
	if c, files := o.readDoctorCheck("config directory"); len(files) > 0 {
		t.Fatalf("doctor reports %+v", c)
	}
	for _, step := range []struct {
		path   string
		mode   os.FileMode
		status string
		want   []string
	}{
		{hooks, 0o755, setupcmd.CheckWarn, []string{hooks}},
		{filepath.Join(config, "guideway.json"), 0o600, setupcmd.CheckFail, []string{filepath.Join(config, "guideway.json"), hooks}},
	} {
		path := filepath.Join(o.home, step.path)
		if err := errors.Join(os.Chown(path, 0, 0), os.Chmod(path, step.mode)); err != nil {
			t.Fatal(err)
		}
		c, files := o.readDoctorCheck("config directory")
		if diff := cmp.Diff(step.want, files); diff != "" || c.Status != step.status {
			t.Errorf("the status is %s, want %s; inaccessible (-) and reported (+) files:\n%s", c.Status, step.status, diff)
		}
	}
	c, _ := o.readDoctorCheck("config directory")
	out, err := exec.CommandContext(t.Context(), "sh", "-c", strings.ReplaceAll(c.Fix, "sudo ", "")).CombinedOutput()
	if err != nil || c.Fix == "" {
		t.Fatalf("%q: %v %s", c.Fix, err, out)
	}
	if _, files := o.readDoctorCheck("config directory"); len(files) > 0 {
		t.Errorf("after %q doctor reports %v", c.Fix, files)
	}
}

// TestDoctorReportsInaccessibleFiles checks that doctor reports each data file that the
// user cannot read or write, with a command that makes these files accessible. A link is
// not reported.
func TestDoctorReportsInaccessibleFiles(t *testing.T) {
	t.Parallel()
	o := newOwnerTest(t)
	o.useEverything(homeOwner)
	data := filepath.Join(o.home, ".local/share/guideway")
	doctor := func() (message, fix string, files []string) {
		c, files := o.readDoctorCheck("data directory")
		return c.Message, c.Fix, files
	}
	if _, _, files := doctor(); len(files) > 0 {
		t.Fatalf("doctor reports %v", files)
	}
	heads, err := filepath.Glob(filepath.Join(o.home, ".local/state/guideway/heads/*.heads"))
	if err != nil || len(heads) == 0 {
		t.Fatal(heads, err)
	}
	want := []string{".local/share/guideway/contexts/blobs", ".local/share/guideway/guideway.db", ".local/share/guideway/journal.key", strings.TrimPrefix(heads[0], o.home+"/")}
	for _, path := range want {
		if err := os.Chown(filepath.Join(o.home, path), 0, 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/etc/shadow", filepath.Join(data, "a-link")); err != nil {
		t.Fatal(err)
	}
	message, fix, files := doctor()
	if diff := cmp.Diff(want, files); diff != "" {
		t.Errorf("inaccessible (-) and reported (+) files:\n%s", diff)
	}
	if !strings.Contains(message, "4 files") {
		t.Errorf("the message is %q", message)
	}
	command := strings.ReplaceAll(fix, "sudo ", "")
	if out, err := exec.CommandContext(t.Context(), "sh", "-c", command).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v %s", fix, err, out)
	}
	if _, _, files := doctor(); len(files) > 0 {
		t.Errorf("after %q doctor reports %v", fix, files)
	}
}

// checkWhileServing checks the owner of the files that exist only while a server runs: the
// logs of the databases, and the file by which other processes find the server.
func (o *ownerTest) checkWhileServing(uid uint32) {
	o.Helper()
	cmd := o.command(uid, "serve", "--listen", "127.0.0.1:0", "--toolsets", "steps,runs,sessions,context,gateway")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		o.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		o.Fatal(err)
	}
	var url string
	for lines := bufio.NewScanner(stderr); url == "" && lines.Scan(); {
		url = regexp.MustCompile(`http://[0-9.:]+`).FindString(lines.Text())
	}
	o.openStore(url)
	if found, _ := filepath.Glob(filepath.Join(o.home, ".local/share/guideway/*-wal")); len(found) == 0 {
		o.Error("the store is not open")
	}
	for _, path := range o.foreignFiles() {
		o.Errorf("%s does not belong to the owner of the directory while %d serves", path, uid)
	}
	_ = cmd.Process.Signal(syscall.SIGTERM)
	_, _ = io.Copy(io.Discard, stderr)
	if err := cmd.Wait(); err != nil {
		o.Errorf("serve as %d: %v", uid, err)
	}
}

// openStore reads the runs of a server, which opens its store.
func (o *ownerTest) openStore(url string) {
	o.Helper()
	token, err := os.ReadFile(filepath.Join(o.home, ".local/share/guideway/token"))
	if err != nil {
		o.Fatal(err)
	}
	r, err := http.NewRequestWithContext(o.Context(), http.MethodGet, url+"/api/runs", nil)
	if err != nil {
		o.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		o.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		o.Errorf("%s: %s", url, answer.Status)
	}
}
