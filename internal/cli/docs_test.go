package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/install"
	"github.com/rogpeppe/go-internal/txtar"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// page is a Markdown file of the documentation.
type page struct {
	name   string
	text   string
	blocks []block
}

// block is a fenced block: its language, its text, the number of its first line and the
// comment directly above it.
type block struct {
	language, text, note string
	line                 int
}

var (
	fence = regexp.MustCompile("(?ms)^([ \t]*)```([a-z]*)\n(.*?)^[ \t]*```")
	above = regexp.MustCompile(`(?s)^<!-- (.*?) -->\n\s*$`)
)

func readPages(t *testing.T) []page {
	t.Helper()
	root := filepath.Join("..", "..")
	var list []page
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/adr/*.md", "docs/reference/*.md", "workflows/*.md", "bench/*.md", "npm/*/*.md"} {
		names, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			p := page{name: filepath.ToSlash(strings.TrimPrefix(name, root+string(filepath.Separator))), text: string(data)}
			for _, at := range fence.FindAllStringSubmatchIndex(p.text, -1) {
				b := block{language: p.text[at[4]:at[5]], text: p.text[at[6]:at[7]], line: strings.Count(p.text[:at[0]], "\n") + 1}
				before := p.text[:at[0]]
				if note := above.FindStringSubmatch(before[max(0, strings.LastIndex(before, "<!-- ")):]); note != nil {
					b.note = note[1]
				}
				p.blocks = append(p.blocks, b)
			}
			list = append(list, p)
		}
	}
	return list
}

// commandLines returns the guideway command lines in a text: in shell blocks, and between
// backticks.
func (p page) commandLines() []string {
	var lines []string
	for _, b := range p.blocks {
		if !slices.Contains([]string{"sh", "console", "bash"}, b.language) {
			continue
		}
		for line := range strings.Lines(b.text) {
			lines = append(lines, strings.TrimPrefix(strings.TrimSpace(line), "$ "))
		}
	}
	for _, m := range regexp.MustCompile("`(guideway [^`\n]+)`").FindAllStringSubmatch(fence.ReplaceAllString(p.text, ""), -1) {
		lines = append(lines, m[1])
	}
	var commands []string
	for _, line := range lines {
		line, _, _ = strings.Cut(line, " #")
		for _, part := range regexp.MustCompile(`\s(?:\|\||&&|;|\|)\s|[<>]`).Split(line, -1) {
			part = strings.TrimSpace(part)
			for assignment.MatchString(part) {
				part = assignment.ReplaceAllString(part, "")
			}
			if rest, ok := strings.CutPrefix(part, "guideway "); ok {
				commands = append(commands, rest)
			}
		}
	}
	return commands
}

var assignment = regexp.MustCompile(`^[A-Z_]+=\S* `)

// Every documented command exists, with all its documented flags.
func TestDocumentationCommands(t *testing.T) {
	t.Parallel()
	seen := 0
	for _, p := range readPages(t) {
		if p.name == "CHANGELOG.md" || p.name == "docs/moved.md" {
			continue // the page documents removed commands
		}
		for _, line := range p.commandLines() {
			seen++
			if err := checkCommandLine(line); err != nil {
				t.Errorf("%s: guideway %s: %v", p.name, line, err)
			}
		}
	}
	if seen < 100 {
		t.Errorf("only %d commands were found, want at least 100", seen)
	}
}

// TestDocumentationPackages checks that each package in a go command of the documentation
// exists.
func TestDocumentationPackages(t *testing.T) {
	t.Parallel()
	named := regexp.MustCompile(`go (?:-C bench )?(?:test|run|build|install)((?: +[^ \n` + "`" + `|]+)+)`)
	for _, p := range readPages(t) {
		if p.name == "CHANGELOG.md" {
			continue
		}
		for _, m := range named.FindAllStringSubmatch(p.text, -1) {
			for _, word := range strings.Fields(m[1]) {
				dir, ok := strings.CutPrefix(strings.TrimRight(word, ".,;:)"), "./")
				if !ok || strings.HasSuffix(word, "...") {
					continue
				}
				if findPackage(dir) == "" {
					t.Errorf("%s names the package %s, which does not exist", p.name, word)
				}
			}
		}
	}
}

// findPackage returns the directory of a package of the product or of bench, or "" if there
// is none.
func findPackage(dir string) string {
	for _, module := range []string{".", "bench"} {
		path := filepath.Join("..", "..", module, dir)
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			return path
		}
	}
	return ""
}

// Every test that the documentation names exists: go test also succeeds for a name without
// a test.
func TestDocumentationTests(t *testing.T) {
	t.Parallel()
	named := regexp.MustCompile("go (?:-C bench )?test ((?:[^`\n|]* )?)(?:-run|-bench) '?([A-Za-z|]+)[^`\n]*")
	seen := 0
	for _, p := range readPages(t) {
		if p.name == "CHANGELOG.md" {
			continue
		}
		for _, m := range named.FindAllStringSubmatch(p.text, -1) {
			dir := regexp.MustCompile(`\./[\w/-]+`).FindString(m[0])
			seen++
			if dir == "" || !hasTest(t, findPackage(dir), m[2]) {
				t.Errorf("%s: %s runs no test", p.name, m[0])
			}
		}
	}
	if seen < 5 {
		t.Errorf("only %d were found, want at least 5", seen)
	}
}

// hasTest reports whether a package has a test or a benchmark that matches a pattern.
func hasTest(t *testing.T, dir, pattern string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if regexp.MustCompile(`(?m)^func (?:Test|Benchmark|Fuzz|Example)?\w*(?:` + pattern + `)\w*\(`).Match(text) {
			return true
		}
	}
	return false
}

// Every internal link of the documentation leads to an existing file and heading, and every
// page is reachable from the index.
func TestDocumentationLinks(t *testing.T) {
	t.Parallel()
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	list := readPages(t)
	headings := map[string]map[string]bool{}
	for _, p := range list {
		headings[p.name] = map[string]bool{}
		for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(fence.ReplaceAllString(p.text, ""), -1) {
			plain := strings.ToLower(strings.ReplaceAll(m[1], " ", "-"))
			headings[p.name][regexp.MustCompile("[^a-z0-9_-]").ReplaceAllString(plain, "")] = true
		}
	}
	index := list[slices.IndexFunc(list, func(p page) bool { return p.name == "docs/README.md" })]
	for _, p := range list {
		if name, ok := strings.CutPrefix(p.name, "docs/"); ok && !strings.HasPrefix(name, "adr/") && name != "README.md" && !strings.Contains(index.text, "("+name) {
			t.Errorf("docs/README.md does not link to %s", name)
		}
		for _, m := range link.FindAllStringSubmatch(fence.ReplaceAllString(p.text, ""), -1) {
			address, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(address, "://") {
				continue
			}
			target := p.name
			if address != "" {
				target = path.Join(path.Dir(p.name), address)
			}
			if _, err := os.Stat(filepath.Join("..", "..", target)); err != nil {
				t.Errorf("%s links to %s, which does not exist", p.name, m[1])
			}
			if known, ok := headings[target]; ok && anchor != "" && !known[anchor] {
				t.Errorf("%s links to %s, but the page has no such heading", p.name, m[1])
			}
		}
	}
}

// checkCommandLine returns an error if a command line has an unknown command or flag.
func checkCommandLine(line string) error {
	line, _, _ = strings.Cut(line, " -- ") // the arguments after -- are for a different program
	line = strings.NewReplacer("…", " ", "...", " ", "[", " ", "]", " ", "{", " ", "}", " ").Replace(line)
	if before, _, found := strings.Cut(line, " | "); found {
		line = before // alternatives, as in list | show
	}
	words := strings.Fields(line)
	root := newRootCmd(&app.App{Host: &app.Host{Out: io.Discard, Err: io.Discard, In: strings.NewReader(""), Getenv: func(string) string { return "" }}})
	cmd, rest, err := root.Find(words)
	if err != nil {
		return err
	}
	if cmd == root && len(words) > 0 && !strings.HasPrefix(words[0], "-") && words[0] != "completion" && words[0] != "help" && strings.ToUpper(words[0]) != words[0] {
		return fmt.Errorf("there is no command %q", words[0])
	}
	if cmd.HasSubCommands() && len(rest) > 0 && regexp.MustCompile(`^[a-z][a-z-]+$`).MatchString(rest[0]) && cmd != root {
		return fmt.Errorf("%s has no command %q", cmd.CommandPath(), rest[0])
	}
	return flagsOf(cmd, rest)
}

func flagsOf(cmd *cobra.Command, words []string) error {
	for _, word := range words {
		name, _, _ := strings.Cut(word, "=")
		name = strings.TrimRight(name, ",.;:)'\"")
		var found *pflag.Flag
		switch {
		case strings.HasPrefix(name, "--") && len(name) > 2:
			found = cmd.Flag(name[2:])
		case len(name) == 2 && name[0] == '-' && name[1] != '-':
			found = cmd.Flags().ShorthandLookup(name[1:])
		default:
			continue
		}
		if found == nil && name != "--help" && name != "-h" {
			return fmt.Errorf("%s has no flag %s", cmd.CommandPath(), name)
		}
	}
	return nil
}

// The reference pages agree with the code.
func TestReference(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]func(*testing.T){
		"commands": referenceOfCommands, "variables": referenceOfVariables, "tools": referenceOfTools,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			of(t)
		})
	}
}

// referenceOfCommands checks that the reference of commands agrees with their help.
func referenceOfCommands(t *testing.T) {
	t.Helper()
	var want strings.Builder
	want.WriteString("# Commands\n\nGenerated by `go test ./internal/cli -run TestReference -update` from the help of the commands. Every command that reads settings accepts them as flags; [configuration.md](../configuration.md) describes them.\n")
	root := newRootCmd(&app.App{Host: &app.Host{Out: io.Discard, Err: io.Discard, In: strings.NewReader(""), Getenv: func(string) string { return "" }}})
	describeCommand(&want, root)
	compareReference(t, "cli.md", want.String())
}

// TestHelpTexts checks that each section of the help texts has its command and each command
// its section, and that the help of install has every client.
func TestHelpTexts(t *testing.T) {
	t.Parallel()
	root := newRootCmd(&app.App{Host: &app.Host{}})
	for _, section := range txtar.Parse(helpTexts).Files {
		cmd, rest, err := root.Find(strings.Fields(section.Name)[1:])
		if err != nil || len(rest) > 0 || cmd.CommandPath() != section.Name {
			t.Errorf("help.txtar has a section %q, which is not a command", section.Name)
		}
	}
	var check func(cmd *cobra.Command)
	check = func(cmd *cobra.Command) {
		if cmd.Short == "" {
			t.Errorf("help.txtar has no section %q", cmd.CommandPath())
		}
		for _, child := range cmd.Commands() {
			check(child)
		}
	}
	check(root)
	help, _, err := root.Find([]string{"install"})
	if err != nil {
		t.Fatal(err)
	}
	for _, client := range install.Clients() {
		if !strings.Contains(help.Long, client.ID) {
			t.Errorf("the help of install does not have the client %s", client.ID)
		}
	}
}

// compareReference compares a generated page with the stored one, or writes it.
func compareReference(t *testing.T, name, want string) {
	t.Helper()
	file := filepath.Join("..", "..", "docs", "reference", name)
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.ReplaceAll(string(got), "\r\n", "\n"), want); diff != "" {
		t.Errorf("docs/reference/%s is not up to date (-file +want), run with -update:\n%s", name, diff)
	}
}

// referenceOfVariables checks that the table of variables agrees with the settings and the
// list of other variables.
func referenceOfVariables(t *testing.T) {
	t.Helper()
	var want strings.Builder
	want.WriteString("# Environment variables\n\nGenerated by `go test ./internal/cli -run TestReference -update`. A variable overrides the configuration file and is overridden by a flag; a variable of another system is read if the one of Guideway is not set.\n\n| Variable | Also | Setting | |\n|---|---|---|---|\n")
	for _, s := range config.Settings() {
		var aliases []string
		for _, alias := range s.Aliases {
			aliases = append(aliases, "`"+alias+"`")
		}
		fmt.Fprintf(&want, "| `%s` | %s | `%s` | %s |\n", s.Env, strings.Join(aliases, ", "), s.Name, strings.ReplaceAll(s.Description(), "|", `\|`))
	}
	for _, v := range documentedVariables(t) {
		var aliases []string
		for _, alias := range v.Aliases {
			aliases = append(aliases, "`"+alias+"`")
		}
		fmt.Fprintf(&want, "| `%s` | %s | | %s |\n", v.Name, strings.Join(aliases, ", "), v.Usage)
	}
	compareReference(t, "environment.md", want.String())
}

// Every documented variable is used in a test.
func TestEveryVariableIsTested(t *testing.T) {
	t.Parallel()
	words := map[string]bool{}
	err := filepath.WalkDir(filepath.Join("..", ".."), func(path string, d os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || d.Name() == ".git" || d.Name() == "dist"):
			return filepath.SkipDir
		case strings.HasSuffix(path, "_test.go") && !strings.HasSuffix(path, "docs_test.go"), strings.HasSuffix(path, ".txtar"), strings.HasSuffix(path, ".e2e.ts"):
			text, err := os.ReadFile(path)
			for word := range strings.FieldsFuncSeq(string(text), func(r rune) bool { return r != '_' && (r < 'A' || r > 'Z') && (r < '0' || r > '9') }) {
				words[word] = true
			}
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range config.Settings() {
		names = append(append(names, s.Env), s.Aliases...)
	}
	for _, v := range documentedVariables(t) {
		names = append(append(names, v.Name), v.Aliases...)
	}
	for _, name := range names {
		before, after, host := strings.Cut(name, "<HOST>")
		named := words[name]
		for word := range words {
			named = named || host && len(word) > len(before)+len(after) && strings.HasPrefix(word, before) && strings.HasSuffix(word, after)
		}
		if name != "" && !named {
			t.Errorf("no test uses the variable %s", name)
		}
	}
}

// documentedVariable is an environment variable that is not a setting, such as a secret.
type documentedVariable struct {
	Name    string
	Aliases []string
	Usage   string
}

// documentedVariables returns the variables that the program reads besides settings.
func documentedVariables(t *testing.T) (list []documentedVariable) {
	t.Helper()
	text, err := os.ReadFile(filepath.FromSlash("../../internal/config/testdata/variables.json"))
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func describeCommand(w *strings.Builder, cmd *cobra.Command) {
	for _, c := range cmd.Commands() {
		if c.Hidden {
			continue
		}
		fmt.Fprintf(w, "\n## %s\n\n%s\n\n```text\n%s\n```\n", c.CommandPath(), strings.TrimSpace(firstNonEmpty(c.Long, c.Short)), c.UseLine())
		if c.Example != "" {
			fmt.Fprintf(w, "\n%s```sh\n%s\n```\n", notRunComment(removeIndent(c.Example)), removeIndent(c.Example))
		}
		var flags []string
		c.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			if f.Hidden || f.Name == "help" || c.InheritedFlags().Lookup(f.Name) != nil {
				return
			}
			kind, usage := pflag.UnquoteUsage(f)
			flags = append(flags, strings.TrimRight(fmt.Sprintf("| `--%s` | %s | %s |", f.Name, kind, strings.ReplaceAll(usage, "|", `\|`)), " "))
		})
		if len(flags) > 0 {
			fmt.Fprintf(w, "\n| Flag | Takes | |\n|---|---|---|\n%s\n", strings.Join(flags, "\n"))
		}
		describeCommand(w, c)
	}
}

// notRunComment returns a comment for the lines of an example that no test can run.
func notRunComment(example string) string {
	var comment []string
	for line := range strings.SplitSeq(example, "\n") {
		for _, left := range [][2]string{
			{"| ssh ", "it needs another machine"},
			{"| jq ", "jq is not on every machine"},
			{"guideway connect", "it serves a client for as long as that lives; TestServeAndConnect"},
			{"openai:", "it asks a model that costs money; TestModelsFromEnvironment asks a server of its own"},
			{"--browser", "it opens a browser"},
			{"migrate workrail --from", "it reads a backup; TestScripts brings one over"},
			{"sources sync team", "it needs a repository; TestScripts has one"},
			{"upstream approve files read_file", "it needs a server whose tools have changed; TestChangedToolNeedsApproval"},
			{"guideway machine run support-desk --input", "it asks the models of your configuration; TestModelsFromEnvironment asks a server of its own"},
			{"--outcome", "it needs a call that was lost in a crash"},
		} {
			if strings.Contains(line, left[0]) {
				comment = append(comment, fmt.Sprintf("`%s` is not run: %s", line, left[1]))
				break
			}
		}
	}
	if len(comment) == 0 {
		return ""
	}
	return "<!-- " + strings.Join(comment, "\n") + " -->\n"
}

func firstNonEmpty(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}

func removeIndent(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		lines = append(lines, strings.TrimSpace(line))
	}
	return strings.Join(lines, "\n")
}
