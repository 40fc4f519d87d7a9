package cheats

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/guideway-dev/guideway/internal/cli"
	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/cli/passphrase"
	"github.com/guideway-dev/guideway/internal/machine/driver"
)

// commandTime limits each command of an agent and of the judge.
const commandTime = 2 * time.Minute

// suite has what all stages share.
type suite struct {
	dir, program string
	// goCache is the build cache, so that the standard library is compiled only once.
	goCache string
	// templates are the directories of the projects, by name.
	templates map[string]string
	// model does the tasks in the role modeled.
	model *driver.SelectedModel
}

// newSuite writes the definitions of the tasks.
func newSuite(ctx context.Context, dir, program string) (*suite, error) {
	s := &suite{dir: dir, program: program, templates: map[string]string{}}
	for _, t := range tasks() {
		for _, checks := range []bool{false, true} {
			text, err := t.definition(checks)
			if err != nil {
				return nil, err
			}
			if err := writeFile(filepath.Join(s.definitions(checks), t.id+".yaml"), text); err != nil {
				return nil, err
			}
		}
	}
	if out, err := exec.CommandContext(ctx, "go", "env", "GOCACHE").Output(); err == nil {
		s.goCache = strings.TrimSpace(string(out))
	}
	return s, nil
}

// definitions returns the directory of the definitions with or without checks.
func (s *suite) definitions(checks bool) string {
	if checks {
		return filepath.Join(s.dir, "definitions", "checks")
	}
	return filepath.Join(s.dir, "definitions", "text")
}

// prepareProject returns a directory with a project: its files, the checks that guideway
// init proposes, and a commit.
func (s *suite) prepareProject(ctx context.Context, p *project) (string, error) {
	if dir, ok := s.templates[p.name]; ok {
		return dir, nil
	}
	t := &stage{suite: s, dir: filepath.Join(s.dir, "template-"+p.name), arm: checksArm}
	if err := t.makeHome(); err != nil {
		return "", err
	}
	for name, text := range p.files {
		if err := writeFile(filepath.Join(t.work(), filepath.FromSlash(name)), text); err != nil {
			return "", err
		}
	}
	for _, argv := range [][]string{
		{"git", "init", "-q", "-b", "main"},
		{"git", "config", "user.name", "Agent"},
		{"git", "config", "user.email", "agent@example.com"},
		{"git", "config", "core.autocrlf", "false"},
		{"git", "config", "commit.gpgsign", "false"},
	} {
		if out, err := t.exec(ctx, t.work(), argv...); err != nil {
			return "", fmt.Errorf("prepare the project %s: %w\n%s", p.name, err, out)
		}
	}
	if _, ok := p.files[checksPath]; !ok {
		if out, err := t.exec(ctx, t.work(), s.program, "init", "--dialect", "none"); err != nil {
			return "", fmt.Errorf("propose the checks of the project %s: %w\n%s", p.name, err, out)
		}
	}
	if out, err := t.exec(ctx, t.work(), "sh", "-c", "git add -A && git commit -qm 'Add the cart'"); err != nil {
		return "", fmt.Errorf("commit the project %s: %w\n%s", p.name, err, out)
	}
	s.templates[p.name] = t.work()
	return t.work(), nil
}

// stage is the place of one agent in one arm: a directory with a workspace, a home
// directory, and a directory outside of both.
type stage struct {
	*suite
	dir string
	// arm is empty for the judge.
	arm arm
}

func (s *stage) work() string    { return filepath.Join(s.dir, "work") }
func (s *stage) home() string    { return filepath.Join(s.dir, "home") }
func (s *stage) outside() string { return filepath.Join(s.dir, "outside") }

// newStage copies a project for one agent.
func (s *suite) newStage(ctx context.Context, p *project, name string, a arm) (*stage, error) {
	template, err := s.prepareProject(ctx, p)
	if err != nil {
		return nil, err
	}
	t := &stage{suite: s, dir: filepath.Join(s.dir, name), arm: a}
	if err := t.makeHome(); err != nil {
		return nil, err
	}
	return t, os.CopyFS(t.work(), os.DirFS(template))
}

// makeHome creates a home directory with the shared build cache.
func (s *stage) makeHome() error {
	for _, dir := range []string{s.outside(), filepath.Join(s.home(), ".cache")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	if s.goCache != "" {
		if err := os.Symlink(s.goCache, filepath.Join(s.home(), ".cache", "go-build")); err != nil {
			return err
		}
	}
	return writeFile(filepath.Join(s.home(), ".npmrc"), "update-notifier=false\nlogs-max=0\n")
}

// environ returns the environment of the server and of the agent, without the user's
// settings. That of the judge has no variable of Guideway.
func (s *stage) environ() []string {
	env := []string{"HOME=" + s.home(), "GIT_CONFIG_NOSYSTEM=1", "GOTOOLCHAIN=local", "NO_COLOR=1"}
	if s.arm != "" {
		env = append(env, "WORKFLOW_STORAGE_PATH="+s.definitions(s.arm == checksArm), "GUIDEWAY_INCLUDE_BUNDLED=false")
	}
	for _, name := range []string{"PATH", "TMPDIR", "LANG"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// exec runs a command and returns its output.
func (s *stage) exec(ctx context.Context, dir string, argv ...string) (string, error) {
	return s.execInput(ctx, dir, "", argv...)
}

func (s *stage) execInput(ctx context.Context, dir, input string, argv ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...) //nolint:gosec // G204: the commands of the scenarios
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.WaitDelay = dir, s.environ(), strings.NewReader(input), time.Second
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// runAsPerson runs a command of Guideway at a terminal, where a person types the lines, and
// the passphrase if the command asks for it. It returns what the terminal shows.
func (s *stage) runAsPerson(ctx context.Context, args []string, typed ...string) (string, error) {
	var out strings.Builder
	env := map[string]string{}
	for _, entry := range s.environ() {
		name, value, _ := strings.Cut(entry, "=")
		env[name] = value
	}
	host := app.Host{
		In: &typist{lines: typed}, Out: &out, Err: &out, Dir: s.work(), Environ: s.environ(),
		Getenv:     func(name string) string { return env[name] },
		InTerminal: true, OutTerminal: true, ErrTerminal: true,
		ReadSecret:     func(context.Context) (string, error) { return "only a person knows this", nil },
		PassphraseCost: passphrase.Cost{Passes: 1, KiB: 8, Threads: 1},
	}
	if code := cli.Run(ctx, args, host); code != app.ExitOK {
		return out.String(), fmt.Errorf("guideway %s: exit code %d: %s", strings.Join(args, " "), code, out.String())
	}
	return out.String(), nil
}

// typist is the keyboard of a person: each read returns one line.
type typist struct{ lines []string }

func (t *typist) Read(p []byte) (int, error) {
	if len(t.lines) == 0 {
		return 0, io.EOF
	}
	n := copy(p, t.lines[0]+"\n")
	t.lines = t.lines[1:]
	return n, nil
}

func writeFile(path, text string) error {
	return errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600))
}
