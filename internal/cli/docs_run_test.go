package cli

import (
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/rogpeppe/go-internal/txtar"
)

// The documentation works: each page is a script in a home of its own. Its files are
// made, its commands run and its tools called in their order, and what it shows as
// output is what comes out, but for what it leaves out with dots.
//
// testdata/docs/PAGE.txtar prepares what a page takes for granted: a run, a graph of
// one's own. Its lines "# WORD is VALUE" say what a word of the page stands for here;
// "# after TOOL: COMMAND" is carried out behind each call of that tool. Its file "typed"
// is what a person types, for pages that need a terminal; "typed WORDS" is for the blocks
// that have these words, and "before WORDS" has lines of a shell that go before those;
// of several the one with the most words counts. "fresh" goes before each block.
func TestDocumentation(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts processes, which takes the race detector long")
	}
	ran := 0
	for _, p := range pages(t) {
		if !executed(p) {
			continue
		}
		server := address(t)
		text, blocks := p.script(t, server)
		if blocks == 0 {
			continue
		}
		ran++
		t.Run(strings.TrimSuffix(p.base(), ".md"), func(t *testing.T) {
			t.Parallel()
			follow(t, p, text, server)
		})
	}
	if ran < 10 {
		t.Errorf("only %d pages have something to run: the search does not work", ran)
	}
}

// base is the page's name without directories: docs/reference/cli.md is reference-cli.md.
func (p page) base() string {
	return strings.ReplaceAll(strings.TrimPrefix(p.name, "docs/"), "/", "-")
}

func follow(t *testing.T, p page, text, server string) {
	t.Helper()
	repository, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, strings.TrimSuffix(p.base(), ".md")+".txtar"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: dir, ContinueOnError: true,
		Setup: func(env *testscript.Env) error {
			env.Values[clientsKey{}] = &clients{open: map[string]*client{}}
			if err := cleanHome(env); err != nil {
				return err
			}
			env.Setenv("GUIDEWAY_LISTEN", server)
			env.Setenv("REPOSITORY", repository)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"shows": shows,
			"mcp": func(ts *testscript.TestScript, neg bool, args []string) {
				ts.Value(clientsKey{}).(*clients).command(ts, neg, args)
			},
			"finds": finds,
		},
	})
}

// address is one that nothing listens at.
func address(t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// pageScript is what is made of a page.
type pageScript struct {
	strings.Builder

	files    map[string]string
	replaced *strings.Replacer
	after    map[string]string // what follows the call of a tool
	calls    bool              // a client of the page's own has been started
	blocks   int
}

// script is a page as a script, in which a server listens at an address, and how many
// of its blocks that runs.
func (p page) script(t *testing.T, server string) (text string, blocks int) {
	t.Helper()
	s := &pageScript{files: map[string]string{}, after: map[string]string{}}
	fixture := &txtar.Archive{}
	if data, err := os.ReadFile(filepath.Join("testdata", "docs", strings.TrimSuffix(p.base(), ".md")+".txtar")); err == nil {
		fixture = txtar.Parse(data)
	}
	stands := []string{"127.0.0.1:3000", server, "127.0.0.1:4000", server, "0.0.0.0:3000", server}
	for _, m := range regexp.MustCompile(`(?m)^# (.+?) is (\S.*)$`).FindAllStringSubmatch(string(fixture.Comment), -1) {
		stands = append(stands, m[1], m[2])
	}
	for _, m := range regexp.MustCompile(`(?m)^# after (\w+): (.+)$`).FindAllStringSubmatch(string(fixture.Comment), -1) {
		s.after[m[1]] = m[2] + "\n"
	}
	s.replaced = strings.NewReplacer(stands...)
	s.Write(fixture.Comment)
	for _, f := range fixture.Files {
		s.files[f.Name] = string(f.Data)
	}
	s.calls = strings.Contains(string(fixture.Comment), "\nmcp docs start")
	for _, b := range p.blocks {
		s.add(t, p, b)
	}
	for _, name := range slices.Sorted(maps.Keys(s.files)) {
		fmt.Fprintf(s, "-- %s --\n%s", name, s.files[name])
	}
	return s.String(), s.blocks
}

func (s *pageScript) add(t *testing.T, p page, b block) {
	t.Helper()
	kind, err := b.kind()
	if err != nil {
		t.Errorf("%s:%d: the block %v", p.name, b.line, err)
		return
	}
	switch kind {
	case kindFile:
		name := fmt.Sprintf("block-%d", b.line)
		s.files[name] = b.text
		fmt.Fprintf(s, "mkdir %s\ncp $WORK/%s $WORK/%s\n", filepath.ToSlash(filepath.Dir(b.file())), name, b.file())
	case kindConsole:
		s.console(b)
	case kindShell:
		s.shell(b)
	case kindCalls:
		if !s.calls {
			s.WriteString("mcp docs start --toolsets steps,runs,sessions,context,phases,machines\n")
			s.calls = true
		}
		for line := range strings.Lines(b.text) {
			m := toolCall.FindStringSubmatch(strings.TrimSpace(line))
			fmt.Fprintf(s, "mcp docs call %s %s\n", m[1], quoted(s.replaced.Replace(m[2])))
			s.WriteString(s.after[m[1]])
		}
	default:
		return
	}
	s.blocks++
}

// console writes what follows "$ " as commands, and compares what they print.
func (s *pageScript) console(b block) {
	for n, part := range strings.Split("\n"+b.text, "\n$ ")[1:] {
		line, want, _ := strings.Cut(part, "\n")
		line, remark, _ := strings.Cut(s.replaced.Replace(line), " # ")
		if strings.Contains(remark, "exit code") {
			s.WriteString("! ")
		}
		name := fmt.Sprintf("want-%d-%d", b.line, n)
		s.files[name] = strings.TrimRight(want, "\n") + "\n"
		if strings.ContainsAny(line, `"|<>&;$`) {
			script := fmt.Sprintf("line-%d-%d.sh", b.line, n)
			s.files[script] = strict + line + "\n"
			line = "bash $WORK/" + script
		}
		fmt.Fprintf(s, "exec %s\nshows %s\n", line, name)
	}
}

// variable is one of a script.
var variable = regexp.MustCompile(`\$[A-Z]+`)

// quoted is a text as one word of a script, in which variables count.
func quoted(text string) string {
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\n", " "), "'", "''")
	return "'" + variable.ReplaceAllString(text, "'$0'") + "'"
}

// strict begins a script that ends at the first command that fails, and says which.
const strict = "set -euo pipefail\ntrap 'echo \"this failed: $BASH_COMMAND\" >&2' ERR\n"

// shell writes a block as one script of a shell, so that a line can use what one
// before it has set. A server that a line starts runs until the block ends.
func (s *pageScript) shell(b block) {
	text := strings.ReplaceAll(s.replaced.Replace(b.text), "\\\n", " ")
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	leaves, _ := b.leaves() // TestDocumentationBlocks says what is wrong with them
	for i, line := range lines {
		command, _, _ := strings.Cut(strings.TrimSpace(line), " #")
		switch {
		case slices.ContainsFunc(leaves, func(beginning string) bool { return strings.HasPrefix(line, s.replaced.Replace(beginning)) }):
			lines[i] = "# " + line
		case strings.HasPrefix(command, "guideway serve"):
			lines[i] = serving(command)
		}
	}
	name := fmt.Sprintf("line-%d.sh", b.line)
	before := strict
	if file := s.nearest("typed", b.text); file != "" {
		fmt.Fprintf(s, "ttyin -stdin '%s'\n", file)
		before += "exec >/dev/tty\n"
	}
	for _, what := range []string{"fresh", "before"} {
		if file := s.nearest(what, b.text); file != "" {
			before += s.files[file]
		}
	}
	s.files[name] = before + strings.Join(lines, "\n") + "\n"
	fmt.Fprintf(s, "exec bash $WORK/%s\n", name)
}

// nearest is the file "WHAT WORDS" with the most words that a text has.
func (s *pageScript) nearest(what, text string) string {
	best, most := "", -1
	for name := range s.files {
		of, words, _ := strings.Cut(name, " ")
		if of == what && strings.Contains(text, words) && len(words) > most {
			best, most = name, len(words)
		}
	}
	return best
}

// serving starts a server, and ends it as soon as it answers: at the end of the script
// where the line has it in the background, else at once.
func serving(command string) string {
	start := strings.TrimSuffix(strings.TrimSpace(command), "&")
	end := "kill $server; wait $server"
	if start != command {
		end = "trap '" + end + "' EXIT"
	}
	return start + " &\nserver=$!\ncurl --retry 1 http://$GUIDEWAY_LISTEN/api/health\n" + end
}

// shows compares what the last command printed, on both ways, with a file in which
// … stands for anything.
func shows(ts *testscript.TestScript, _ bool, args []string) {
	got := strings.TrimRight(ts.ReadFile("stdout")+ts.ReadFile("stderr"), "\n") + "\n"
	want := ts.ReadFile(args[0])
	pattern := strings.ReplaceAll(regexp.QuoteMeta(want), "…", `.*`)
	if !regexp.MustCompile(`(?s)^` + pattern + `$`).MatchString(got) {
		ts.Fatalf("it printed otherwise:\n%s", cmp.Diff(want, got))
	}
}

// finds keeps what a pattern finds in the last output: finds VARIABLE PATTERN.
func finds(ts *testscript.TestScript, _ bool, args []string) {
	out := ts.ReadFile("stdout")
	m := regexp.MustCompile(args[1]).FindStringSubmatch(out)
	if m == nil {
		ts.Fatalf("%s is not in the output:\n%s", args[1], out)
	}
	ts.Setenv(args[0], m[len(m)-1])
}
