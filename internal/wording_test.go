package internal_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "lower the allowed number of unclear sentences in the documentation")

// wordingRules are constructions that the wording rules of AGENTS.md exclude. Each
// one is common in translated or private English and rare in well-kept Go code.
func wordingRules() map[string]*regexp.Regexp {
	return map[string]*regexp.Regexp{
		"begins with a relative pronoun":                          regexp.MustCompile(`^(What|Who|Whoever|Which)\b[^?]*$`),
		`uses a clause with "what" or "who"`:                      regexp.MustCompile(`\b(what|who) (is|was|has|had|came|comes|goes|stands|stood|differs|follows|waits|gives|holds)\b`),
		`uses "nobody", "somebody" or "whoever"`:                  regexp.MustCompile(`(?i)\b(nobody|somebody|whoever|whatever)\b`),
		`uses "stand" for "be"`:                                   regexp.MustCompile(`\b(stands|stood|stand)\b( for\b)?`),
		`uses "is none" for "there is no"`:                        regexp.MustCompile(`\b(is none|are none|there is none)\b`),
		`uses "behind", "beside", "anew" or "meanwhile"`:          regexp.MustCompile(`\b(behind|beside|anew|meanwhile)\b( (a|the|an|nginx|any|your) ?([\w-]+ )?(proxy|balancer|firewall|gateway|NAT))?`),
		`uses "tell", "say" or "give" for "return"`:               regexp.MustCompile(`\b(tells|told|says|gives) (whether|what|who|how|of|why|where|it|them)\b`),
		`uses "mend", "by itself", "of its own" or similar words`: regexp.MustCompile(`\b(mend|mended|mends|befalls|lies in|of its own|of today|by itself|at most so many)\b`),
	}
}

// unclear returns the rules that a sentence breaks.
func unclear(sentence string) (broken []string) {
	for name, rule := range wordingRules() {
		for _, m := range rule.FindAllStringSubmatch(sentence, -1) {
			if slices.ContainsFunc(m[1:], func(group string) bool {
				return strings.HasPrefix(group, " ")
			}) {
				continue // "stands for" and "behind a proxy" are the usual terms
			}
			broken = append(broken, name)
			break
		}
	}
	slices.Sort(broken)
	return broken
}

var sentenceEnd = regexp.MustCompile("([.!?:])\\s+([A-Z`*\\[])")

// sentences splits a text into its sentences of four words and more.
func sentences(text string) (list []string) {
	for _, s := range strings.Split(sentenceEnd.ReplaceAllString(text, "$1\x00$2"), "\x00") {
		if s = strings.TrimSpace(s); len(strings.Fields(s)) >= 4 {
			list = append(list, s)
		}
	}
	return list
}

// trackedFiles returns the files of the repository that a git pathspec names.
func trackedFiles(t *testing.T, patterns ...string) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", append([]string{"ls-files", "--"}, patterns...)...)
	cmd.Dir = ".."
	out, err := cmd.Output()
	if err != nil {
		t.Skipf("git ls-files: %v: the sources are not a git checkout", err)
	}
	var files []string
	for _, name := range strings.Fields(string(out)) {
		if _, err := os.Stat(filepath.Join("..", name)); err == nil {
			files = append(files, name)
		}
	}
	return files
}

// TestWordingOfComments checks that at most 0.5 % of the comment sentences break a wording
// rule: the rules are patterns, and a few good sentences match one.
func TestWordingOfComments(t *testing.T) {
	t.Parallel()
	total, found := 0, []string{}
	for _, name := range trackedFiles(t, "*.go") {
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, filepath.Join("..", name), nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if ast.IsGenerated(f) || name == "internal/wording_test.go" {
			continue
		}
		for _, group := range f.Comments {
			for _, s := range sentences(strings.Join(strings.Fields(group.Text()), " ")) {
				total++
				if broken := unclear(s); len(broken) > 0 {
					found = append(found, fmt.Sprintf("%s:%d: %q %s", name, fset.Position(group.Pos()).Line, s, strings.Join(broken, "; ")))
				}
			}
		}
	}
	if len(found)*200 > total {
		t.Errorf("%d of %d sentences, more than 0.5 %%, break a wording rule:\n%s", len(found), total, strings.Join(found, "\n"))
	}
}

// TestNamesOfFunctions checks that at most 20 % of the unexported functions and methods
// have a one-word name: a name is a verb and its object.
func TestNamesOfFunctions(t *testing.T) {
	t.Parallel()
	const allowed = 20
	all, oneWord := 0, map[string]int{}
	for _, name := range trackedFiles(t, "*.go") {
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", name), nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if ast.IsGenerated(f) {
			continue
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || ast.IsExported(fn.Name.Name) || fn.Name.Name == "main" || fn.Name.Name == "init" {
				continue
			}
			all++
			if strings.ToLower(fn.Name.Name) == fn.Name.Name && !strings.Contains(fn.Name.Name, "_") {
				oneWord[fn.Name.Name]++
			}
		}
	}
	count := 0
	for _, n := range oneWord {
		count += n
	}
	if count*100 > all*allowed {
		t.Errorf("%d of %d unexported functions have a name of one word, more than %d %%", count, all, allowed)
	}
}

var codeBlock = regexp.MustCompile("(?s)```.*?```")

// TestWordingOfDocuments checks that no document has more unclear sentences than
// testdata/wording.txt allows. The numbers may only fall: -update lowers them.
func TestWordingOfDocuments(t *testing.T) {
	t.Parallel()
	const ratchet = "testdata/wording.txt"
	allowed := map[string]int{}
	text, err := os.ReadFile(ratchet)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if name, count, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok {
			if allowed[name], err = strconv.Atoi(count); err != nil {
				t.Fatal(err)
			}
		}
	}
	var lowered strings.Builder
	for _, name := range trackedFiles(t, "*.md") {
		text, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Fatal(err)
		}
		var found []string
		for _, part := range regexp.MustCompile(`\n\s*\n|\n[-*|#] ?`).Split(codeBlock.ReplaceAllString(string(text), ""), -1) {
			for _, s := range sentences(strings.Join(strings.Fields(part), " ")) {
				if len(unclear(s)) > 0 {
					found = append(found, s)
				}
			}
		}
		if len(found) > allowed[name] {
			t.Errorf("%s has %d unclear sentences, more than the allowed %d:\n  %s", name, len(found), allowed[name], strings.Join(found, "\n  "))
		}
		if n := min(len(found), allowed[name]); n > 0 {
			fmt.Fprintf(&lowered, "%s\t%d\n", name, n)
		}
	}
	if *update {
		if err := os.WriteFile(ratchet, []byte(lowered.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
