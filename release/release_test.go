// Package release_test tests the release artifacts: npm packages, the root file system of
// the container, the systemd unit and the Homebrew formula.
package release_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

// root is the root of the repository.
const root = ".."

// buildDir is the temporary directory of the built program.
var buildDir string

// binary builds the program once, as a release does.
var binary = sync.OnceValues(func() (string, error) {
	path := filepath.Join(buildDir, "guideway")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", path, "./cmd/guideway")
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, os.Chmod(buildDir, 0o755) // a different user starts the program in this directory
})

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "guideway-release-")
	if err != nil {
		panic(err)
	}
	buildDir = dir
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

func builtProgram(t *testing.T) string {
	t.Helper()
	if os.Getenv("GUIDEWAY_TEST_RELEASE") == "" {
		t.Skip("set GUIDEWAY_TEST_RELEASE=1: it builds a release binary")
	}
	if runtime.GOOS != "linux" {
		t.Skip("the packages can only be tested on Linux")
	}
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// runProgram starts a program and returns its output.
func runProgram(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = dir, env
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// checkStory executes the example of the README as an MCP client: the workflows are listed,
// a run starts, and an insufficient output is refused.
func checkStory(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var complaints strings.Builder
	cmd.Stderr = &complaints
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 8<<20)
	ask := func(method, params string) string {
		t.Helper()
		fmt.Fprintf(in, `{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`+"\n", method, params)
		if !lines.Scan() {
			t.Fatalf("no answer to %s: %v\n%s", method, lines.Err(), complaints.String())
		}
		return lines.Text()
	}
	call := func(tool, arguments string) string {
		t.Helper()
		return ask("tools/call", `{"name":"`+tool+`","arguments":`+arguments+`}`)
	}
	ask("initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}`)
	fmt.Fprintln(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	if got := call("workflow_list", `{}`); !strings.Contains(got, "coding-task") {
		t.Errorf("the list of workflows is %.300s", got)
	}
	var began struct {
		Result struct {
			StructuredContent struct{ Handle string } `json:"structuredContent"`
		}
	}
	if err := json.Unmarshal([]byte(call("workflow_start", `{"workflowId":"coding-task"}`)), &began); err != nil {
		t.Fatal(err)
	}
	handle := began.Result.StructuredContent.Handle
	if got := call("workflow_continue", `{"handle":"`+handle+`","output":"ok"}`); handle == "" || !strings.Contains(got, `"isError":true`) {
		t.Errorf("an insufficient output was not refused: %.300s", got)
	}
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Errorf("the server ended with %v\n%s", err, complaints.String())
	}
}

// TestNPM checks that the packed npm packages work without a network, even with npx, and
// return the exit code of the program. Without the package of the platform, the program
// reports that it is not installed.
func TestNPM(t *testing.T) {
	t.Parallel()
	path := builtProgram(t)
	for _, needed := range []string{"npm", "node"} {
		if _, err := exec.LookPath(needed); err != nil {
			t.Skipf("%s is not installed", needed)
		}
	}
	dir := t.TempDir()
	env := append(os.Environ(), "HOME="+dir, "npm_config_cache="+filepath.Join(dir, "cache"), "npm_config_offline=true", "npm_config_update_notifier=false")
	processor := map[string]string{"amd64": "x64"}[runtime.GOARCH]
	if processor == "" {
		processor = runtime.GOARCH
	}
	packages := filepath.Join(dir, "packages")
	runProgram(t, root, env, "node", "npm/build.mjs", "--version", "v1.2.3", "--out", packages, "linux-"+processor+"="+path)
	var packed []string
	for _, name := range []string{"guideway-linux-" + processor, "guideway"} {
		runProgram(t, filepath.Join(packages, name), env, "npm", "pack", "--pack-destination", dir)
		packed = append(packed, filepath.Join(dir, "guideway-dev-"+name+"-1.2.3.tgz"))
	}
	clean := filepath.Join(dir, "clean")
	if err := os.Mkdir(clean, 0o700); err != nil {
		t.Fatal(err)
	}
	runProgram(t, clean, env, "npm", append([]string{"install", "--ignore-scripts", "--no-audit", "--no-fund"}, packed...)...)
	if got := runProgram(t, clean, env, "npx", "guideway", "doctor", "--selftest"); !strings.Contains(got, " 0 fail") {
		t.Errorf("doctor --selftest by npx:\n%s", got)
	}
	serve := exec.CommandContext(t.Context(), "npx", "guideway", "mcp")
	serve.Dir, serve.Env = clean, env
	checkStory(t, serve)
	wrong := exec.CommandContext(t.Context(), "npx", "guideway", "validate")
	wrong.Dir, wrong.Env = clean, env
	if err := wrong.Run(); wrong.ProcessState.ExitCode() != 2 {
		t.Errorf("a usage error ends with %v, want exit code 2", err)
	}
	if err := os.RemoveAll(filepath.Join(clean, "node_modules/@guideway-dev/guideway-linux-"+processor)); err != nil {
		t.Fatal(err)
	}
	lonely := exec.CommandContext(t.Context(), filepath.Join(clean, "node_modules/.bin/guideway"), "version")
	lonely.Env = env
	if out, err := lonely.CombinedOutput(); err == nil || !strings.Contains(string(out), "is not installed") {
		t.Errorf("without the package of its platform, guideway returned %v: %s", err, out)
	}
}

// dockerLine returns the arguments of an instruction in the Dockerfile's last stage.
func dockerLine(t *testing.T, word string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	_, last, _ := strings.Cut(string(text), "\nFROM alpine")
	found := regexp.MustCompile(`(?m)^` + word + ` (.*)$`).FindStringSubmatch(last)
	if found == nil {
		t.Fatalf("the Dockerfile has no line %s", word)
	}
	return found[1]
}

// TestContainer starts Guideway as in the Dockerfile, with only the files that the image
// adds to its base. It checks that Guideway serves a client and stores the run in the
// volume, and that the image installs git and ssh.
func TestContainer(t *testing.T) {
	t.Parallel()
	path := builtProgram(t)
	if os.Geteuid() != 0 {
		t.Skip("only root can enter a root file system")
	}
	if packages := strings.Fields(dockerLine(t, "RUN apk add")); !slices.Contains(packages, "git") || !slices.Contains(packages, "openssh-client-default") {
		t.Errorf("the image has the packages %v", packages)
	}
	dir := t.TempDir()
	certificates := filepath.Join(dir, "ca.crt")
	if err := os.WriteFile(certificates, []byte("# none\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	rootfs := filepath.Join(dir, "rootfs")
	runProgram(t, root, os.Environ(), "release/rootfs", path, certificates, rootfs)
	runProgram(t, "/", os.Environ(), "chown", "-R", "65532:65532", rootfs)
	for p := dir; p != os.TempDir() && p != "/"; p = filepath.Dir(p) {
		if err := os.Chmod(p, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	var entry, command []string
	if json.Unmarshal([]byte(dockerLine(t, "ENTRYPOINT")), &entry) != nil || json.Unmarshal([]byte(dockerLine(t, "CMD")), &command) != nil {
		t.Fatal("ENTRYPOINT and CMD of the Dockerfile are not lists")
	}
	// Container engines create a namespace with /proc and /dev.
	for _, point := range []string{"proc", "dev"} {
		if err := os.Mkdir(filepath.Join(rootfs, point), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.CommandContext(t.Context(), "unshare", "--mount", "mount", "-t", "proc", "proc", filepath.Join(rootfs, "proc")).CombinedOutput(); err != nil {
		t.Skipf("a namespace with /proc cannot be created: %v %s", err, out)
	}
	enter := func(ctx context.Context, args ...string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, "unshare", append([]string{
			"--mount", "sh", "-c",
			`mount -t proc proc "$0/proc" && mount --bind /dev "$0/dev" && user=$1 && shift && exec chroot --userspec="$user" "$0" "$@"`,
			rootfs, dockerLine(t, "USER"),
		}, args...)...)
		cmd.Env = append(strings.Fields(dockerLine(t, "ENV")), "PATH="+os.Getenv("PATH"))
		return cmd
	}
	check := enter(t.Context(), append(entry, "doctor", "--selftest")...)
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("doctor --selftest in the container: %v\n%s", err, out)
	}
	checkStory(t, enter(t.Context(), append(entry, command...)...))
	if _, err := os.Stat(filepath.Join(rootfs, strings.TrimPrefix(dockerLine(t, "VOLUME"), "/"), "guideway.db")); err != nil {
		t.Errorf("the run is not stored in the volume: %v", err)
	}
	list := enter(t.Context(), append(entry, "runs", "list", "--json")...)
	if out, err := list.CombinedOutput(); err != nil || !strings.Contains(string(out), "coding-task") {
		t.Errorf("the run is not found again: %v\n%s", err, out)
	}
}

// TestUnit checks that systemd accepts the unit, if systemd is installed.
func TestUnit(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("systemd is not installed")
	}
	text, err := os.ReadFile("guideway.service")
	if err != nil {
		t.Fatal(err)
	}
	// The program of the unit need not be on this machine.
	unit := filepath.Join(t.TempDir(), "guideway.service")
	if err := os.WriteFile(unit, []byte(strings.ReplaceAll(string(text), "/usr/local/bin/guideway", "/bin/true")), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "systemd-analyze", "verify", unit).CombinedOutput(); err != nil {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
}

// TestFormula checks that the formula contains each archive with its checksum, and that
// none is created without the checksums of its version.
func TestFormula(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the formula is created by a shell script")
	}
	sums := filepath.Join(t.TempDir(), "checksums.txt")
	var list strings.Builder
	for i, name := range []string{"linux_amd64", "linux_arm64", "darwin_amd64", "darwin_arm64"} {
		fmt.Fprintf(&list, "%064d  guideway_1.2.3_%s.tar.gz\n", i, name)
	}
	if err := os.WriteFile(sums, []byte(list.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	got := runProgram(t, root, os.Environ(), "release/formula", "v1.2.3", sums)
	for i, name := range []string{"linux_amd64", "linux_arm64", "darwin_amd64", "darwin_arm64"} {
		want := fmt.Sprintf("v1.2.3/guideway_1.2.3_%s.tar.gz\"\n      sha256 \"%064d\"\n", name, i)
		if !strings.Contains(got, want) {
			t.Errorf("the formula lacks %q:\n%s", want, got)
		}
	}
	if err := exec.CommandContext(t.Context(), filepath.Join(root, "release/formula"), "v1.2.4", sums).Run(); err == nil {
		t.Error("a formula was created without checksums")
	}
}
