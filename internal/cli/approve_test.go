package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/rogpeppe/go-internal/txtar"
)

// typeSecrets makes the host read its secrets from the lines of in, without an echo. "^D"
// is the end of the input.
func typeSecrets(host *app.Host, in *fakeTerminal) {
	host.ReadSecret = func(context.Context) (string, error) {
		if len(in.lines) == 0 {
			return "", io.EOF
		}
		line := in.lines[0]
		in.lines = in.lines[1:]
		if line == "^D" {
			return "", io.EOF
		}
		return line, nil
	}
}

// agent makes the calls of an agent on a host and returns the id of the run. Each line of
// calls is "start {...}" or "continue {...}" with the arguments of the request.
func agent(t *testing.T, host app.Host, calls string) (runID string) {
	t.Helper()
	user, err := auth.SystemUser()
	if err != nil {
		t.Fatal(err)
	}
	caller := run.Caller{Principal: guideway.Principal{User: user, Client: "agent"}, Via: run.ViaAgent}
	root := &app.App{Host: &host, Flags: &app.SettingFlags{}}
	cfg, err := root.Load()
	if err != nil {
		t.Fatal(err)
	}
	cat, err := root.OpenCatalog(t.Context(), cfg, false)
	if err != nil {
		t.Fatal(err)
	}
	defer cat.Close()
	s := root.NewStore(cfg, app.StartableDefinitions{Catalog: cat})
	defer s.Close()
	runs, err := s.NewRuns(nil)
	if err != nil {
		t.Fatal(err)
	}
	var answer *run.Answer
	for line := range strings.Lines(calls) {
		what, arguments, _ := strings.Cut(strings.TrimSpace(line), " ")
		var start run.StartRequest
		var next run.ContinueRequest
		switch what {
		case "start":
			if err = json.Unmarshal([]byte(arguments), &start); err == nil {
				answer, err = runs.Start(t.Context(), caller, start)
			}
		case "continue":
			if err = json.Unmarshal([]byte(arguments), &next); err == nil {
				next.Handle = answer.Handle
				answer, err = runs.Continue(t.Context(), caller, next)
			}
		default:
			t.Fatalf("unknown agent action %q", what)
		}
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
	}
	return answer.RunID
}

// anyID and anyTime match the run ids and times of an output, which differ between test
// runs.
var (
	anyID   = regexp.MustCompile(`r_[0-9a-z]{23}`)
	anyTime = regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d|\d\d-\d\d \d\d:\d\d:\d\d`)
)

// Each transcript is the terminal of a person who continues a stored run or opens a gate:
// the workflow, the previous actions of an agent, the commands with their input, and the
// final content of the terminal. RUN is the run's id; a line that begins with "secret:" is
// typed at a passphrase prompt, which does not echo it.
func TestApprovalTranscripts(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/person/*.txtar")
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
					return ""
				}
				return string(archive.Files[i].Data)
			}
			host, out := newTerminal(t, map[string]string{"NO_COLOR": "1"})
			host.Dir = filepath.Join(host.Dir, "work")
			writeFile(t, filepath.Join(host.Dir, ".guideway", "workflows", "flow.yaml"), part("flow.yaml"))
			id := agent(t, host, part("agent"))
			for line := range strings.Lines(part("commands")) {
				command, typed, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " <- ")
				out.WriteString("$ guideway " + command + "\n")
				in := &fakeTerminal{echo: out}
				if typed != "" {
					in.lines = strings.Split(strings.ReplaceAll(typed, "RUN", id), " | ")
				}
				host.In = in
				typeSecrets(&host, in)
				code := Run(t.Context(), strings.Fields(strings.ReplaceAll(command, "RUN", id)), host)
				out.WriteString("[exit code " + string(rune('0'+code)) + "]\n")
			}
			compareTerminal(t, file, archive, normalizeOutput(out, host.Dir, id))
		})
	}
}

// normalizeOutput replaces the directory, run id and times of an output, which differ
// between test runs.
func normalizeOutput(out *bytes.Buffer, dir, id string) string {
	text := strings.ReplaceAll(out.String(), id, "RUN")
	text = anyID.ReplaceAllString(text, "OTHER")
	text = anyTime.ReplaceAllString(text, "WHEN")
	return strings.ReplaceAll(text, dir, "DIR")
}

func compareTerminal(t *testing.T, file string, archive *txtar.Archive, got string) {
	t.Helper()
	i := slices.IndexFunc(archive.Files, func(f txtar.File) bool { return f.Name == "terminal" })
	if *update {
		if i < 0 {
			i = len(archive.Files)
			archive.Files = append(archive.Files, txtar.File{Name: "terminal"})
		}
		archive.Files[i].Data = []byte(got)
		if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if i < 0 {
		t.Fatalf("%s has no terminal; run with -update to record it", file)
	}
	if diff := cmp.Diff(string(archive.Files[i].Data), got); diff != "" {
		t.Errorf("(-want +got; run with -update to accept):\n%s", diff)
	}
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestFormatAge(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.Local)
	host := &app.Host{Now: func() time.Time { return now }}
	for d, want := range map[time.Duration]string{
		-time.Hour: "just now", 59 * time.Second: "just now", time.Minute: "1 min ago", 61 * time.Minute: "1 h ago",
		23 * time.Hour: "23 h ago", 24 * time.Hour: "1 day ago", 72 * time.Hour: "3 days ago", 40 * 24 * time.Hour: "2026-10-11",
	} {
		if got := host.FormatAge(now.Add(-d)); got != want {
			t.Errorf("%s: %q, want %q", d, got, want)
		}
	}
}
