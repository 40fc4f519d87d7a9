package cli

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/cli/passphrase"
	"github.com/rogpeppe/go-internal/txtar"
)

// fakeTerminal types lines, and echoes them like a terminal. The line "^D" ends the input
// once.
type fakeTerminal struct {
	lines []string
	echo  io.Writer
}

func (t *fakeTerminal) Read(p []byte) (int, error) {
	if len(t.lines) == 0 {
		return 0, io.EOF
	}
	line := t.lines[0]
	t.lines = t.lines[1:]
	if line == "^D" {
		_, err := io.WriteString(t.echo, "^D")
		if err != nil {
			return 0, err
		}
		return 0, io.EOF
	}
	_, err := io.WriteString(t.echo, line+"\n")
	return copy(p, line+"\n"), err
}

// newTerminal returns a separate terminal for one test.
func newTerminal(t *testing.T, env map[string]string, typed ...string) (app.Host, *bytes.Buffer) {
	t.Helper()
	out := &bytes.Buffer{}
	dir := t.TempDir()
	return app.Host{
		In: &fakeTerminal{lines: typed, echo: out}, Out: out, Err: out, Dir: dir,
		Getenv: func(name string) string {
			if name == "HOME" {
				return dir
			}
			return env[name]
		},
		InTerminal: true, OutTerminal: true, ErrTerminal: true,
		PassphraseCost: passphrase.Cost{Passes: 1, KiB: 8, Threads: 1},
	}, out
}

// Each transcript is the terminal of a person: the workflow, the line typed after
// "guideway", the input, and the final content of the terminal.
func TestTerminalTranscripts(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/terminal/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			part := func(name string) string {
				i := slices.IndexFunc(archive.Files, func(f txtar.File) bool { return f.Name == name })
				if i < 0 {
					t.Fatalf("no %s in %s", name, file)
				}
				return string(archive.Files[i].Data)
			}
			host, out := newTerminal(t, map[string]string{"NO_COLOR": "1"}, strings.Split(strings.TrimSuffix(part("typed"), "\n"), "\n")...)
			if err := os.WriteFile(filepath.Join(host.Dir, "flow.yaml"), []byte(part("flow.yaml")), 0o600); err != nil {
				t.Fatal(err)
			}
			code := Run(t.Context(), strings.Fields(part("command")), host)
			got := out.String() + "[exit code " + string(rune('0'+code)) + "]\n"
			if *update {
				i := slices.IndexFunc(archive.Files, func(f txtar.File) bool { return f.Name == "terminal" })
				archive.Files[i].Data = []byte(got)
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(part("terminal"), got); diff != "" {
				t.Errorf("(-want +got; run with -update to accept):\n%s", diff)
			}
		})
	}
}

func TestColorOnlyOnTerminals(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		env      map[string]string
		terminal bool
		want     bool
	}{
		{"a terminal", nil, true, true},
		{"a pipe", nil, false, false},
		{"NO_COLOR", map[string]string{"NO_COLOR": "1"}, true, false},
		{"a dumb terminal", map[string]string{"TERM": "dumb"}, true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			host, out := newTerminal(t, tt.env)
			host.OutTerminal, host.ErrTerminal = tt.terminal, tt.terminal
			for _, args := range [][]string{{"list"}, {"show", "coding-task"}, {"doctor"}, {"sources"}} {
				out.Reset()
				Run(t.Context(), args, host)
				if got := strings.Contains(out.String(), "\x1b["); got != tt.want {
					t.Errorf("%v: colored is %v, want %v:\n%s", args, got, tt.want, out)
				}
			}
		})
	}
}

// At a terminal, the program without arguments shows the help.
func TestNoArgumentsPrintHelp(t *testing.T) {
	t.Parallel()
	host, out := newTerminal(t, nil)
	if code := Run(t.Context(), nil, host); code != app.ExitOK || !strings.Contains(out.String(), "guideway COMMAND") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
}

// Ctrl-C ends a command that waits for input.
func TestInterruptStopsRun(t *testing.T) {
	t.Parallel()
	in, typing := io.Pipe()
	defer func() { _ = typing.Close() }()
	host, out := newTerminal(t, map[string]string{"NO_COLOR": "1"})
	host.In = in
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if code := Run(ctx, []string{"run", "coding-task"}, host); code != app.ExitFailed {
		t.Errorf("exit code %d:\n%s", code, out)
	}
}

// The texts of a definition cannot control the terminal.
func TestControlCharactersAreStripped(t *testing.T) {
	t.Parallel()
	const flow = `{"id": "flow", "name": "A\u001b[2Jflow", "description": "It \u001b]0;steers\u0007 and \u202ehides.", "version": "1.0.0",
		"metaGuidance": ["\u001b[31mred"],
		"steps": [{"id": "one", "title": "\u001b[1mOne", "prompt": "Do\r\u001b[A it.", "requireConfirmation": true,
		"runCondition": {"var": "x\u001b[m", "equals": "\u001b[5m"},
		"validationCriteria": [{"type": "contains", "value": "\u001b[7m", "message": "\u001b[8mhidden"}]}]}`
	for _, args := range [][]string{
		{"show", "./flow.json"}, {"run", "./flow.json"}, {"list"}, {"validate", "flow.json"}, {"show", "./flow.json", "--graph", "mermaid"},
	} {
		host, out := newTerminal(t, map[string]string{"NO_COLOR": "1"}, "\x1b[5m", "", "no", ".", ":vars", ":quit")
		host.In = strings.NewReader("1\nno\n.\n:vars\n:quit\n") // unlike fakeTerminal, this input is not echoed
		if err := os.WriteFile(filepath.Join(host.Dir, "flow.json"), []byte(flow), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(host.Dir, "workflows"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(host.Dir, "workflows", "flow.json"), []byte(flow), 0o600); err != nil {
			t.Fatal(err)
		}
		Run(t.Context(), args, host)
		if strings.ContainsAny(out.String(), "\x1b\a\r\u202e") {
			t.Errorf("%v: a control character reached the terminal:\n%q", args, out)
		}
	}
}
