// Mutate measures whether tests notice faults. It inserts small faults (mutants) into a
// fixed sample of places of the security and durability packages, runs the tests of each
// package against each of its mutants, and prints the mutants that no test notices. It
// fails if the tests notice less than the required share.
//
//	go run ./internal/testutil/mutate [-sample N] [-seed N] [-least PERCENT] [PACKAGE...]
//
// A package is compiled once with all its mutants; an environment variable selects the
// active mutant. The sample consists of the mutants with the lowest hashes of the seed and
// the mutant, so that an edit of the code changes little of the sample. A mutant that
// changes no behavior is listed in equivalent.txt with the reason.
package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

//go:embed equivalent.txt
var equivalents string

// targets are the packages of a nightly run, each with the files that are mutated; an empty
// list means all files.
func targets() map[string][]string {
	return map[string][]string{
		"internal/httpapi/auth": nil, "internal/contexts/blob": nil, "internal/contexts/blob/seal": nil, "internal/platform/secret": nil,
		"internal/store/sqlite": nil, "internal/store/rollbackguard": nil, "internal/store/keyfile": nil, "internal/run": nil,
		"internal/engine": nil, "internal/hooks/approval": nil, "internal/platform/atomicfile": nil,
		"internal/gateway": {"pins.go", "limits.go", "request_state.go"},
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := testAll(ctx, os.Stdout, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// testAll tests the mutants of all packages and prints the results.
func testAll(ctx context.Context, out io.Writer, args []string) error {
	flags := flag.NewFlagSet("mutate", flag.ContinueOnError)
	sample := flags.Int("sample", 20, "maximum number of mutants of a package")
	seed := flags.Uint64("seed", 1, "seed of the sample")
	least := flags.Float64("least", 85, "minimum share of noticed mutants in percent")
	known, err := parseEquivalents(equivalents)
	if err := errors.Join(err, flags.Parse(args)); err != nil {
		return err
	}
	dirs := flags.Args()
	if len(dirs) == 0 {
		dirs = slices.Sorted(maps.Keys(targets()))
	}
	fmt.Fprintf(out, "at most %d mutants of each package, seed %d\n", *sample, *seed)
	noticed, tested := 0, 0
	for _, dir := range dirs {
		s, all, err := loadSuite(ctx, path.Clean(dir))
		if err != nil {
			return fmt.Errorf("%s: %w", dir, err)
		}
		s.sample = chooseSample(all, known, *sample, *seed)
		n, err := s.testMutants(ctx, out)
		if err != nil {
			return fmt.Errorf("%s: %w", dir, err)
		}
		fmt.Fprintf(out, "%s: %d of %d mutants noticed\n", s.dir, n, len(s.sample))
		noticed, tested = noticed+n, tested+len(s.sample)
	}
	share := 100 * float64(noticed) / float64(max(tested, 1))
	fmt.Fprintf(out, "all: %d of %d mutants noticed (%.1f %%)\n", noticed, tested, share)
	if share < *least {
		return fmt.Errorf("the tests notice %.1f %% of the mutants, less than %.0f %%", share, *least)
	}
	return nil
}

// parseEquivalents parses the list of equivalent mutants. Each line has a mutant and a
// reason, separated by " // ". Lines that begin with # are comments.
func parseEquivalents(text string) (map[string]bool, error) {
	known := map[string]bool{}
	for line := range strings.Lines(text) {
		key, reason, _ := strings.Cut(strings.TrimSpace(line), " // ")
		if key == "" || strings.HasPrefix(key, "#") {
			continue
		}
		if reason == "" {
			return nil, errors.New("equivalent.txt has no reason for " + key)
		}
		known[key] = true
	}
	return known, nil
}

// mutant is a fault: text that is inserted before and after a node of a file.
type mutant struct {
	file string
	line int
	// key identifies the mutant in equivalent.txt, independently of its line.
	key           string
	from, to      int
	before, after string
}

// condition is the code that is true if the mutant is active. insertMutants replaces # by
// the number of the mutant.
const condition = `mutantIs("#")`

// finder collects the mutants of a file.
type finder struct {
	path, function string
	src            []byte
	file           *token.File
	found          []*mutant
	keys           map[string]int
}

// findMutants returns all mutants of a file.
func findMutants(root, path string) ([]*mutant, error) {
	src, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		return nil, err
	}
	files := token.NewFileSet()
	tree, err := parser.ParseFile(files, path, src, parser.SkipObjectResolution|parser.ParseComments)
	if err != nil || ast.IsGenerated(tree) {
		return nil, err
	}
	f := &finder{path: path, src: src, file: files.File(tree.FileStart), keys: map[string]int{}}
	for _, d := range tree.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
			f.function = fn.Name.Name
			ast.Inspect(fn.Body, f.addNode)
		}
	}
	return f.found, nil
}

// source returns the text of a node.
func (f *finder) source(n ast.Node) string {
	return string(f.src[f.file.Offset(n.Pos()):f.file.Offset(n.End())])
}

// wrap adds a mutant that inserts text around a node.
func (f *finder) wrap(n ast.Node, kind, before, after string) {
	key := fmt.Sprintf("%s %s: %s: %s", f.path, f.function, kind, strings.Join(strings.Fields(f.source(n)), " "))
	if f.keys[key]++; f.keys[key] > 1 {
		key += fmt.Sprintf(" (%d)", f.keys[key])
	}
	f.found = append(f.found, &mutant{f.path, f.file.Line(n.Pos()), key, f.file.Offset(n.Pos()), f.file.Offset(n.End()), before, after})
}

// addNode adds the mutants of a node.
func (f *finder) addNode(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GenDecl:
		return n.Tok != token.CONST
	case *ast.IfStmt:
		f.wrap(n.Cond, "the condition is never true", "(", ") && !"+condition)
		f.wrap(n.Cond, "the condition is always true", "(", ") || "+condition)
	case *ast.SwitchStmt:
		for _, s := range n.Body.List {
			for _, e := range s.(*ast.CaseClause).List {
				if n.Tag == nil {
					f.wrap(e, "the case is never taken", "(", ") && !"+condition)
				}
			}
		}
	case *ast.BinaryExpr:
		f.addBinary(n)
	case *ast.Ident:
		if n.Name == "true" || n.Name == "false" {
			f.wrap(n, "the value is reversed", "(", " != "+condition+")")
		}
	case *ast.BlockStmt:
		f.addStatements(n.List)
	case *ast.CaseClause:
		f.addStatements(n.Body)
	}
	return true
}

// addStatements adds mutants that drop a call or an assignment. It skips calls that log or
// panic, and results that are discarded.
func (f *finder) addStatements(list []ast.Stmt) {
	for _, s := range list {
		text := strings.ToLower(f.source(s))
		assign, isAssign := s.(*ast.AssignStmt)
		_, isCall := s.(*ast.ExprStmt)
		isCall = isCall && !strings.HasPrefix(text, "panic(") && !strings.Contains(text, "log.") && !strings.Contains(text, "logger.")
		if isCall || isAssign && assign.Tok != token.DEFINE && f.source(assign.Lhs[0]) != "_" {
			f.wrap(s, "the statement is dropped", "if !"+condition+" { ", " }")
		}
	}
}

// addBinary adds the mutants of a comparison, or of && and ||. A mutant of a bound evaluates
// the operands twice, so bounds that call a function other than len are skipped.
func (f *finder) addBinary(n *ast.BinaryExpr) {
	switch n.Op {
	case token.LAND, token.LOR:
		ignored := map[token.Token]string{token.LAND: ") || " + condition + ")", token.LOR: ") && !" + condition + ")"}[n.Op]
		f.wrap(n.X, "the operand is ignored", "((", ignored)
		f.wrap(n.Y, "the operand is ignored", "((", ignored)
	case token.EQL, token.NEQ:
		f.wrap(n, "the comparison is reversed", "((", ") != "+condition+")")
	case token.LSS, token.GTR, token.LEQ, token.GEQ:
		join := map[token.Token]string{token.LSS: " || ", token.GTR: " || "}[n.Op]
		pure := !strings.Contains(strings.ReplaceAll(f.source(n), "len(", ""), "(")
		if equal := "(" + condition + " && (" + f.source(n.X) + ") == (" + f.source(n.Y) + ")))"; pure {
			f.wrap(n, "the bound is moved", "(", cmp.Or(join, " && !")+equal)
		}
	}
}

// chooseSample returns a sample of the mutants, without the equivalent mutants.
func chooseSample(all []*mutant, known map[string]bool, most int, seed uint64) []*mutant {
	all = slices.DeleteFunc(all, func(m *mutant) bool { return known[m.key] })
	hash := func(m *mutant) string { return fmt.Sprintf("%x", sha256.Sum256(fmt.Append(nil, seed, " ", m.key))) }
	slices.SortFunc(all, func(a, b *mutant) int { return strings.Compare(hash(a), hash(b)) })
	all = all[:min(len(all), most)]
	slices.SortStableFunc(all, func(a, b *mutant) int { return cmp.Or(cmp.Compare(a.file, b.file), a.line-b.line) })
	return all
}

// insertMutants returns a source with the mutants of its file inserted; the number of a
// mutant is its index in the list. The line numbers of the source do not change.
func insertMutants(src []byte, path string, list []*mutant) []byte {
	type insertion struct {
		at, order int
		text      string
	}
	var texts []insertion
	for i, m := range list {
		if m.file == path {
			// At the same position, the ends of mutants precede beginnings, inner ends
			// precede outer ends, and outer beginnings precede inner beginnings.
			number, size := strings.NewReplacer("#", fmt.Sprint(i), "\n", " "), (m.to-m.from)*len(list)+i
			texts = append(texts, insertion{m.from, 1<<40 - size, number.Replace(m.before)}, insertion{m.to, size - 1<<40, number.Replace(m.after)})
		}
	}
	slices.SortFunc(texts, func(a, b insertion) int { return cmp.Or(a.at-b.at, a.order-b.order) })
	var out bytes.Buffer
	last := 0
	for _, t := range texts {
		out.Write(src[last:t.at])
		out.WriteString(t.text)
		last = t.at
	}
	out.Write(src[last:])
	return out.Bytes()
}

// selectVariable is the environment variable with the number of the active mutant.
const selectVariable = "GUIDEWAY_MUTANT"

// selectSource is added to a mutated package.
const selectSource = `package %s

import mutantos "os"

var activeMutant = mutantos.Getenv("` + selectVariable + `")

func mutantIs(n string) bool { return n == activeMutant }
`

// suite has the tests of a package and a sample of its mutants.
type suite struct {
	root, name, dir, temp, binary string
	sample                        []*mutant
	timeout                       time.Duration
	flags                         []string
}

// loadSuite returns the tests of a package, and all mutants of the files that are compiled
// on this system.
func loadSuite(ctx context.Context, dir string) (*suite, []*mutant, error) {
	text, err := exec.CommandContext(ctx, "go", "list", "-f", `{{.Module.Dir}};{{.Name}};{{join .GoFiles ";"}}`, "./"+dir).Output()
	fields := strings.Split(strings.TrimSpace(string(text)), ";")
	if err != nil || len(fields) < 3 {
		return nil, nil, fmt.Errorf("list the files: %w", err)
	}
	var all []*mutant
	for _, file := range fields[2:] {
		if only := targets()[dir]; len(only) > 0 && !slices.Contains(only, file) {
			continue
		}
		found, err := findMutants(fields[0], path.Join(dir, file))
		if err != nil {
			return nil, nil, err
		}
		all = append(all, found...)
	}
	return &suite{root: fields[0], name: fields[1], dir: dir, timeout: 10 * time.Minute}, all, nil
}

// testMutants runs the tests against each mutant, prints the mutants that no test notices,
// and returns the number of mutants that a test notices.
func (s *suite) testMutants(ctx context.Context, out io.Writer) (noticed int, err error) {
	if s.temp, err = os.MkdirTemp("", "guideway-mutate-"); err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(s.temp) }()
	s.binary = filepath.Join(s.temp, "package.test")
	if err := s.compile(ctx); err != nil {
		return 0, err
	}
	begin := time.Now()
	if err := s.run(ctx, -1); err != nil {
		return 0, fmt.Errorf("the tests fail without a mutant: %w", err)
	}
	s.timeout = 4*time.Since(begin) + 20*time.Second
	for i, m := range s.sample {
		err := s.run(ctx, i)
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		if err != nil {
			noticed++
			continue
		}
		fmt.Fprintf(out, "%s:%d: not noticed: %s\n", m.file, m.line, m.key)
	}
	return noticed, nil
}

// compile compiles the tests with all mutants.
func (s *suite) compile(ctx context.Context) error {
	texts := map[string][]byte{"mutants_of_this_run.go": fmt.Appendf(nil, selectSource, s.name)}
	for _, m := range s.sample {
		src, err := os.ReadFile(filepath.Join(s.root, m.file))
		if err != nil {
			return err
		}
		texts[path.Base(m.file)] = insertMutants(src, m.file, s.sample)
	}
	replace := map[string]string{}
	for name, text := range texts {
		to := filepath.Join(s.temp, name)
		replace[filepath.Join(s.root, s.dir, name)] = to
		if err := os.WriteFile(to, text, 0o600); err != nil {
			return err
		}
	}
	overlay := filepath.Join(s.temp, "overlay.json")
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err == nil {
		err = os.WriteFile(overlay, text, 0o600)
	}
	if err != nil {
		return err
	}
	text, err = exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", s.binary, "./"+s.dir).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w\n%s", err, text)
	}
	// Failures of pgregory.net/rapid tests must not leave files in the repository.
	const noFile = "-rapid.nofailfile"
	if exec.CommandContext(ctx, s.binary, "-test.list", "^$", noFile).Run() == nil {
		s.flags = []string{noFile}
	}
	return nil
}

// run runs the tests with a mutant, and returns an error if they fail or do not end.
func (s *suite) run(ctx context.Context, number int) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.binary, append(s.flags, "-test.short", "-test.failfast", "-test.timeout", s.timeout.String())...)
	cmd.Dir, cmd.WaitDelay = filepath.Join(s.root, s.dir), time.Second
	cmd.Env = append(os.Environ(), selectVariable+"="+strconv.Itoa(number))
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, text[max(0, len(text)-2000):])
	}
	return nil
}
