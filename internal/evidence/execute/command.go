package execute

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/evidence/checksfile"
	"github.com/guideway-dev/guideway/internal/evidence/execute/runner"
	"github.com/guideway-dev/guideway/internal/platform/shortid"
	"github.com/guideway-dev/guideway/internal/workflow/criteria"
)

// errTimeLimit is the cause of the end of a command at its time limit.
var errTimeLimit = errors.New("time limit")

// executeCommand executes a command.
func (j *job) executeCommand(ctx context.Context) error {
	if issue := checkArguments(j.template.Argv, j.rule.Argv); issue != "" {
		j.giveUp(issue)
		return nil
	}
	spec, sandbox, err := j.newSpec()
	if err != nil {
		return err
	}
	if spec.Path == "" {
		j.giveUp(fmt.Sprintf("the program %s was not found, or is not executable; a name without a slash must be on PATH", j.rule.Argv[0]))
		return nil
	}
	defer sandbox.remove()
	limit, err := time.ParseDuration(cmp.Or(j.rule.Timeout, checksfile.DefaultTimeout))
	if err != nil {
		return guideway.Errorf(guideway.CodeInvalidDefinition, "the timeout %q of the check is not a duration", j.rule.Timeout).WithFix(`write a duration such as "90s" or "5m"`)
	}
	limited, cancel := context.WithTimeoutCause(ctx, limit, errTimeLimit)
	defer cancel()
	out := newOutput(j.opts.Limits.OutputBytes)
	stopProgress := j.reportProgress(out)
	report, err := runner.Run(limited, spec, out)
	stopProgress()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	out.record(&j.result)
	j.result.Argv, j.result.Dir, j.result.Killed, j.result.Sandboxed = j.rule.Argv, spec.Dir, report.Killed, spec.Sandbox != nil
	if report.Exited {
		j.result.ExitCode = &report.ExitCode
	}
	switch {
	case errors.Is(err, errTooMuchOutput):
		j.giveUp(fmt.Sprintf("the command was stopped because it wrote more than %d bytes", j.opts.Limits.OutputBytes))
	case err != nil:
		return guideway.Errorf(guideway.CodeUnavailable, "the command of the check cannot be executed: %w", err)
	case report.Failure != "":
		j.giveUp(report.Failure)
	case report.TooMany:
		j.giveUp(fmt.Sprintf("the command was stopped because it had more than %d processes at the same time", j.opts.Limits.Processes))
	case report.Left > 0:
		j.giveUp(fmt.Sprintf("processes of the command that could not be killed and are still running: %d", report.Left))
	case errors.Is(context.Cause(limited), errTimeLimit):
		j.giveUp(fmt.Sprintf("the command did not end within its time limit of %v", limit))
	case !report.Exited:
		j.giveUp("the command was killed by the signal " + report.Signal)
	default:
		j.judgeCommand(out)
	}
	return j.checkUnchanged()
}

// judgeCommand compares the exit code and the output of a command that ended.
func (j *job) judgeCommand(out *output) {
	want := 0
	if j.rule.ExitCode != nil {
		want = *j.rule.ExitCode
	}
	if code := *j.result.ExitCode; code != want {
		j.fail(fmt.Sprintf("%s exited with %d instead of %d", j.describeCommand(), code, want))
		return
	}
	j.judgeText("the output of "+j.describeCommand(), out.parts())
}

// describeCommand describes the command in an issue.
func (j *job) describeCommand() string {
	text := strings.Join(j.rule.Argv, " ")
	if j.check != nil {
		return "the check " + j.check.Name + " (`" + shorten(text, 100) + "`)"
	}
	return "`" + shorten(text, 200) + "`"
}

func shorten(text string, most int) string {
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "..."
	}
	return text
}

// checkUnchanged gives up if a file that defines the command changed after its approval was
// looked up.
func (j *job) checkUnchanged() error {
	again, err := checksfile.Resolve(j.root, j.request.Template, j.request.Rule, j.approved)
	if err != nil || again == nil || again.Subject == nil || again.Subject.Hash != j.subject.Hash {
		j.giveUp("the definition of the command, or a file that defines the command, changed or became unreadable while the command ran: run the check again")
	}
	return nil
}

// reportProgress sends messages about the command until the returned function is called.
func (j *job) reportProgress(out *output) (stop func()) {
	send := j.request.Progress
	if send == nil {
		return func() {}
	}
	send("executes " + j.describeCommand())
	began := j.opts.Now()
	ticker := time.NewTicker(j.opts.Limits.Progress)
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-ticker.C:
				message := fmt.Sprintf("%s has run for %v", j.describeCommand(), j.opts.Now().Sub(began).Round(time.Second))
				if line := out.lastLine(); line != "" {
					message += ": " + shorten(line, 200)
				}
				send(message)
			case <-done:
				return
			}
		}
	}()
	return func() {
		ticker.Stop()
		close(done)
		<-ended
	}
}

// checkArguments returns why the arguments of a command must not be used, or "": a value is
// data, never an option or the program. It checks again what the definition's diagnostics
// report, because values are known only now.
func checkArguments(template, filled []string) string {
	if i, caller := criteria.VariableInProgram(template); caller != "" {
		return caller + " can run its arguments as commands, so none may contain a variable"
	} else if i >= 0 {
		return fmt.Sprintf("a variable in the argument %q would decide which program or script runs", template[i])
	}
	if i := criteria.VariableInOption(template); i >= 0 {
		return fmt.Sprintf("a variable in the argument %q would decide which option the program gets", template[i])
	}
	tool := strings.ToLower(strings.TrimSuffix(path.Base(filepath.ToSlash(template[0])), ".exe"))
	for i, argument := range filled {
		literal, _, _ := strings.Cut(template[i], "{{")
		switch {
		case argument == template[i]:
		case literal == "" && strings.HasPrefix(argument, "-"):
			return fmt.Sprintf("the value of %s begins with \"-\", so that the program could read it as an option", template[i])
		case !strings.Contains(literal, "=") && strings.Contains(argument, "=") && slices.Contains([]string{"make", "gmake", "nmake", "just"}, tool):
			return fmt.Sprintf("the value of %s contains \"=\", so that %s would read it as a variable", template[i], tool)
		case strings.ContainsRune(argument, 0):
			return fmt.Sprintf("the value of %s contains a zero byte", template[i])
		}
	}
	return ""
}

// newSpec returns the specification of the command. Its path is empty if the program was not
// found.
func (j *job) newSpec() (spec runner.Spec, private *sandboxDir, err error) {
	dir, err := j.findDir()
	if err != nil {
		return spec, nil, err
	}
	marker := "GUIDEWAY_CHECK=" + shortid.Token("")
	spec = runner.Spec{
		Argv: j.rule.Argv, Dir: dir, Env: append(environment(j.rule.Env), marker), Marker: marker,
		MaxProcesses: j.opts.Limits.Processes, Grace: j.opts.Limits.Grace,
	}
	if spec.Path, err = findProgram(dir, j.rule.Argv[0]); err != nil {
		return spec, nil, nil //nolint:nilerr // the caller reports the missing program
	}
	if runtime.GOOS == "windows" && isBatch(spec.Path) && slices.ContainsFunc(j.rule.Argv[1:], hasShellCharacter) {
		return spec, nil, guideway.Errorf(guideway.CodeForbidden, "%s is a batch file, so that a shell would read its arguments", spec.Path).
			WithFix("call the program itself, or use arguments of letters, digits and . _ / : = -")
	}
	if j.check == nil || !j.check.Sandbox {
		return spec, nil, nil
	}
	if err := runner.CheckSandbox(j.check.Network); err != nil {
		return spec, nil, explainSandbox(j.check.Name, err)
	}
	private, err = newSandboxDir()
	if err != nil {
		return spec, nil, err
	}
	spec.Env = private.use(spec.Env)
	spec.Sandbox = &runner.Sandbox{Writable: append(writablePlaces(spec.Env), j.root, private.dir), Network: j.check.Network}
	return spec, private, nil
}

// explainSandbox returns the error for a check whose sandbox this computer does not have.
func explainSandbox(check string, err error) error {
	if errors.Is(err, runner.ErrNetwork) {
		return guideway.Errorf(guideway.CodeUnavailable, "the check %s runs only in a sandbox without network, which this computer does not have: %w", check, err).
			WithFix("use Linux 6.7 or newer, enable user namespaces, or set \"network: true\" in %s and approve the check again", checksfile.Path)
	}
	return guideway.Errorf(guideway.CodeUnavailable, "the check %s runs only in a sandbox, and this computer has none: %w", check, err).
		WithFix("use Linux 6.2 or newer with Landlock enabled, or remove \"sandbox: true\" from %s and approve the check again", checksfile.Path)
}

// findDir returns the working directory, which must be inside the workspace.
func (j *job) findDir() (string, error) {
	root, err := filepath.EvalSymlinks(j.root)
	dir := ""
	if err == nil {
		dir, err = filepath.EvalSymlinks(filepath.Join(root, filepath.FromSlash(j.rule.Dir)))
	}
	if err != nil {
		return "", guideway.Errorf(guideway.CodeUnavailable, "the directory %s of the check cannot be read: %w", cmp.Or(j.rule.Dir, j.root), err).
			WithFix("create the directory, or correct \"dir\"")
	}
	if rel, err := filepath.Rel(root, dir); err != nil || !filepath.IsLocal(rel) {
		return "", guideway.Errorf(guideway.CodeForbidden, "the directory %s of the check is outside the workspace", j.rule.Dir).WithFix("use a directory below %s", root)
	}
	return dir, nil
}

// findProgram returns the path of a program: one with a directory is relative to the working
// directory, others are found on PATH.
func findProgram(dir, name string) (string, error) {
	if !strings.ContainsAny(name, `/\`) {
		return exec.LookPath(name)
	}
	if name = filepath.FromSlash(name); !filepath.IsAbs(name) {
		name = filepath.Join(dir, name)
	}
	return exec.LookPath(name)
}

func isBatch(name string) bool {
	return slices.Contains([]string{".bat", ".cmd"}, strings.ToLower(filepath.Ext(name)))
}

// hasShellCharacter reports whether an argument has a character that cmd.exe may interpret.
func hasShellCharacter(argument string) bool {
	return strings.ContainsFunc(argument, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/:=@+-\\", r)
	})
}

// passedVariables are the variables of the environment that each command receives: where
// programs, the user's files, temporary files and certificates are, and the language.
var passedVariables = []string{
	"PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "SSL_CERT_FILE", "SSL_CERT_DIR",
	"GOROOT", "GOTOOLCHAIN", "JAVA_HOME", "RUSTUP_HOME", "NVM_DIR", "PYENV_ROOT", "RBENV_ROOT", "VOLTA_HOME", "VIRTUAL_ENV",
	// Windows
	"SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "TEMP", "TMP", "USERNAME", "USERPROFILE", "HOMEDRIVE", "HOMEPATH", "APPDATA", "LOCALAPPDATA",
	"PROGRAMDATA", "PROGRAMFILES", "PROGRAMFILES(X86)", "COMMONPROGRAMFILES", "NUMBER_OF_PROCESSORS", "PROCESSOR_ARCHITECTURE", "OS",
}

// cacheVariables are the variables that name the caches of tools. Each command receives them,
// and a command in a sandbox can write there.
var cacheVariables = []string{
	"XDG_CACHE_HOME", "GOPATH", "GOCACHE", "GOMODCACHE", "GOLANGCI_LINT_CACHE", "CARGO_HOME", "CARGO_TARGET_DIR", "npm_config_cache", "NPM_CONFIG_CACHE",
	"YARN_CACHE_FOLDER", "PNPM_HOME", "PIP_CACHE_DIR", "UV_CACHE_DIR", "POETRY_CACHE_DIR", "PYTEST_CACHE_DIR", "RUFF_CACHE_DIR", "MYPY_CACHE_DIR",
	"GRADLE_USER_HOME", "CCACHE_DIR", "SCCACHE_DIR", "DENO_DIR", "BUN_INSTALL_CACHE_DIR",
}

// homeCaches are the caches below the user's home.
var homeCaches = []string{
	".cache", ".npm", ".yarn", ".pnpm-store", ".local/share/pnpm", ".cargo/registry", ".cargo/git", ".cargo/.package-cache", ".gradle", ".m2/repository",
	"go/pkg", ".deno", ".bun/install/cache", ".ccache", ".nuget/packages", ".local/share/virtualenvs",
}

// environment returns the environment of a command: the usual variables and the named ones,
// with the values of this process.
func environment(named []string) []string {
	wanted := slices.Concat(passedVariables, cacheVariables, named)
	return slices.DeleteFunc(os.Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return !slices.ContainsFunc(wanted, func(w string) bool {
			return w == name || runtime.GOOS == "windows" && strings.EqualFold(w, name)
		})
	})
}

// writablePlaces returns the directories and devices outside the workspace that a command in
// a sandbox can write.
func writablePlaces(env []string) []string {
	places := []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx", "/dev/pts", "/dev/shm"}
	for _, entry := range env {
		name, value, _ := strings.Cut(entry, "=")
		switch {
		case !filepath.IsAbs(value):
		case name == "GOPATH":
			places = append(places, filepath.Join(value, "pkg"))
		case name == "HOME":
			for _, cache := range homeCaches {
				places = append(places, filepath.Join(value, cache))
			}
		case slices.Contains(cacheVariables, name):
			places = append(places, value)
		}
	}
	return places
}

// sandboxDir is the directory for temporary files of a command in a sandbox.
type sandboxDir struct{ dir string }

func newSandboxDir() (*sandboxDir, error) {
	dir, err := os.MkdirTemp("", "guideway-check-")
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "create a temporary directory: %w", err).WithFix("make %s writable for this user, and check that its disk is not full", os.TempDir())
	}
	return &sandboxDir{dir}, nil
}

// use returns an environment in which temporary files are in the directory.
func (s *sandboxDir) use(env []string) []string {
	env = slices.DeleteFunc(env, func(entry string) bool { return strings.HasPrefix(entry, "TMPDIR=") })
	return append(env, "TMPDIR="+s.dir)
}

// remove removes the directory.
func (s *sandboxDir) remove() {
	if s == nil {
		return
	}
	// A directory that the command has made read-only remains.
	_ = os.RemoveAll(s.dir)
}
