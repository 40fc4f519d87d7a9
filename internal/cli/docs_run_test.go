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

// The documentation works: each page is a script with its own home directory. Its files are
// created, its commands run and its tools called in order, and the output is compared with
// the page, except where the page has dots.
//
// testdata/docs/PAGE.txtar prepares the state that a page assumes: a run, a hook graph. Its
// lines "# WORD is VALUE" define the value of a word of the page; "# after TOOL: COMMAND"
// runs a command after each call of that tool. Its file "typed" is the input of pages that
// need a terminal; "typed WORDS" is for the blocks with these words, and "before WORDS" has
// shell lines that run before those blocks; if several match, the one with the most words
// is used. "fresh" runs before each block.
func TestDocumentation(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts processes, which takes long under the race detector")
	}
	ran := 0
	for _, p := range readPages(t) {
		if !isExecuted(p) {
			continue
		}
		server := freeAddress(t)
		text, blocks := p.testScript(t, server)
		if blocks == 0 {
			continue
		}
		ran++
		t.Run(strings.TrimSuffix(p.baseName(), ".md"), func(t *testing.T) {
			t.Parallel()
			runPage(t, p, text, server)
		})
	}
	if ran < 10 {
		t.Errorf("only %d pages have blocks to run; the search is wrong", ran)
	}
}

// baseName returns the page's name without directories: docs/reference/cli.md is
// reference-cli.md.
func (p page) baseName() string {
	return strings.ReplaceAll(strings.TrimPrefix(p.name, "docs/"), "/", "-")
}

func runPage(t *testing.T, p page, text, server string) {
	t.Helper()
	repository, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, strings.TrimSuffix(p.baseName(), ".md")+".txtar"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: dir, ContinueOnError: true,
		Setup: func(env *testscript.Env) error {
			env.Values[clientsKey{}] = &clients{open: map[string]*client{}}
			if err := newHome(env); err != nil {
				return err
			}
			env.Setenv("GUIDEWAY_LISTEN", server)
			env.Setenv("REPOSITORY", repository)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"shows": compareOutput,
			"mcp": func(ts *testscript.TestScript, neg bool, args []string) {
				ts.Value(clientsKey{}).(*clients).runCommand(ts, neg, args)
			},
			"finds": captureMatch,
		},
	})
}

// freeAddress returns an address without a listener.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// pageScript is the script generated from a page.
type pageScript struct {
	strings.Builder

	files    map[string]string
	replaced *strings.Replacer
	after    map[string]string // commands to run after a call of each tool
	calls    bool              // whether the page's MCP client was started
	blocks   int
}

// testScript returns a page as a script for a server at an address, and the number of blocks
// that the script runs.
func (p page) testScript(t *testing.T, server string) (text string, blocks int) {
	t.Helper()
	s := &pageScript{files: map[string]string{}, after: map[string]string{}}
	fixture := &txtar.Archive{}
	if data, err := os.ReadFile(filepath.Join("testdata", "docs", strings.TrimSuffix(p.baseName(), ".md")+".txtar")); err == nil {
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
		s.addBlock(t, p, b)
	}
	for _, name := range slices.Sorted(maps.Keys(s.files)) {
		fmt.Fprintf(s, "-- %s --\n%s", name, s.files[name])
	}
	return s.String(), s.blocks
}

func (s *pageScript) addBlock(t *testing.T, p page, b block) {
	t.Helper()
	kind, err := b.checkKind()
	if err != nil {
		t.Errorf("%s:%d: the block %v", p.name, b.line, err)
		return
	}
	switch kind {
	case kindFile:
		name := fmt.Sprintf("block-%d", b.line)
		s.files[name] = b.text
		fmt.Fprintf(s, "mkdir %s\ncp $WORK/%s $WORK/%s\n", filepath.ToSlash(filepath.Dir(b.fileName())), name, b.fileName())
	case kindConsole:
		s.addConsole(b)
	case kindShell:
		s.addShell(b)
	case kindCalls:
		if !s.calls {
			s.WriteString("mcp docs start --toolsets steps,runs,sessions,context,phases,machines\n")
			s.calls = true
		}
		for line := range strings.Lines(b.text) {
			m := toolCall.FindStringSubmatch(strings.TrimSpace(line))
			fmt.Fprintf(s, "mcp docs call %s %s\n", m[1], quoteWord(s.replaced.Replace(m[2])))
			s.WriteString(s.after[m[1]])
		}
	default:
		return
	}
	s.blocks++
}

// addConsole writes the text after "$ " as commands, and compares their output.
func (s *pageScript) addConsole(b block) {
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

// variable matches a script variable.
var variable = regexp.MustCompile(`\$[A-Z]+`)

// quoteWord quotes a text as one word of a script; variables in it are expanded.
func quoteWord(text string) string {
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\n", " "), "'", "''")
	return "'" + variable.ReplaceAllString(text, "'$0'") + "'"
}

// strict is the start of a shell script that exits at the first failing command and prints
// it.
const strict = "set -euo pipefail\ntrap 'echo \"this failed: $BASH_COMMAND\" >&2' ERR\n"

// addShell writes a block as one shell script, so that a line can use variables of earlier
// lines. A server that a line starts runs until the block ends.
func (s *pageScript) addShell(b block) {
	text := strings.ReplaceAll(s.replaced.Replace(b.text), "\\\n", " ")
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	leaves, _ := b.skippedPrefixes() // reported by TestDocumentationBlocks
	for i, line := range lines {
		command, _, _ := strings.Cut(strings.TrimSpace(line), " #")
		switch {
		case slices.ContainsFunc(leaves, func(beginning string) bool { return strings.HasPrefix(line, s.replaced.Replace(beginning)) }):
			lines[i] = "# " + line
		case strings.HasPrefix(command, "guideway serve"):
			lines[i] = stopAfterAnswer(command)
		}
	}
	name := fmt.Sprintf("line-%d.sh", b.line)
	before := strict
	if file := s.nearestFile("typed", b.text); file != "" {
		fmt.Fprintf(s, "ttyin -stdin '%s'\n", file)
		before += "exec >/dev/tty\n"
	}
	for _, what := range []string{"fresh", "before"} {
		if file := s.nearestFile(what, b.text); file != "" {
			before += s.files[file]
		}
	}
	s.files[name] = before + strings.Join(lines, "\n") + "\n"
	fmt.Fprintf(s, "exec bash $WORK/%s\n", name)
}

// nearestFile returns the archive file "WHAT WORDS" for a text: the one with the most
// words, all of which must be in the text.
func (s *pageScript) nearestFile(what, text string) string {
	best, most := "", -1
	for name := range s.files {
		of, words, _ := strings.Cut(name, " ")
		if of == what && strings.Contains(text, words) && len(words) > most {
			best, most = name, len(words)
		}
	}
	return best
}

// stopAfterAnswer starts a server, and stops it after its first answer: at the end of the
// script if the line runs it in the background, otherwise immediately.
func stopAfterAnswer(command string) string {
	start := strings.TrimSuffix(strings.TrimSpace(command), "&")
	end := "kill $server; wait $server"
	if start != command {
		end = "trap '" + end + "' EXIT"
	}
	return start + " &\nserver=$!\ncurl --retry 1 http://$GUIDEWAY_LISTEN/api/health\n" + end
}

// compareOutput compares the output of the last command, on both streams, with a file;
// "…" in the file matches any text.
func compareOutput(ts *testscript.TestScript, _ bool, args []string) {
	got := strings.TrimRight(ts.ReadFile("stdout")+ts.ReadFile("stderr"), "\n") + "\n"
	want := ts.ReadFile(args[0])
	pattern := strings.ReplaceAll(regexp.QuoteMeta(want), "…", `.*`)
	if !regexp.MustCompile(`(?s)^` + pattern + `$`).MatchString(got) {
		ts.Fatalf("the output differs (-want +got):\n%s", cmp.Diff(want, got))
	}
}

// captureMatch implements the command "finds VARIABLE PATTERN": it stores the match of a
// pattern in the last output in a variable.
func captureMatch(ts *testscript.TestScript, _ bool, args []string) {
	out := ts.ReadFile("stdout")
	m := regexp.MustCompile(args[1]).FindStringSubmatch(out)
	if m == nil {
		ts.Fatalf("no match for %s in the output:\n%s", args[1], out)
	}
	ts.Setenv(args[0], m[len(m)-1])
}
