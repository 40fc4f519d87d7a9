package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/hooks/sandbox"
	"github.com/guideway-dev/guideway/internal/workflow"
	"go.yaml.in/yaml/v3"
)

// isExecuted reports whether the blocks of a page are run: only the blocks of the user
// documentation are.
func isExecuted(p page) bool {
	return p.name == "README.md" || strings.HasPrefix(p.name, "docs/") || strings.HasPrefix(p.name, "npm/")
}

// kind is the way a test checks a block.
type kind int

const (
	kindNone    kind = iota
	kindLeft         // not run, for the reason in the comment above it
	kindShell        // shell commands
	kindConsole      // commands after "$ ", and their output
	kindCalls        // tool calls, one for each line
	kindFile         // a file that later commands use
	kindData         // JSON or YAML: a definition, settings or the entry in a client's configuration
	kindScript       // JavaScript for the sandbox
	kindDrawing      // other text
)

var (
	toolCall = regexp.MustCompile(`^([a-z]+_[a-z_]+) +(\{.*\})$`)
	fileName = regexp.MustCompile(`^# file: (\S+)\n`)
	leftOut  = regexp.MustCompile("(?m)^(?:not run|`([^`\n]+)` is not run): (\\S.{8,})$")
	testName = regexp.MustCompile(`\bTest[A-Z]\w+`)
)

// checkKind returns the way a block is checked. A block that is not checked and has no reason
// for it is an error.
func (b block) checkKind() (kind, error) {
	switch b.language {
	case "sh", "bash":
		if strings.HasPrefix(b.note, "not run") {
			return b.uncheckedKind()
		}
		return kindShell, nil
	case "console":
		return kindConsole, nil
	case "json", "yaml":
		if b.fileName() != "" {
			return kindFile, nil
		}
		if strings.HasPrefix(b.note, "not run") {
			return b.uncheckedKind()
		}
		return kindData, nil
	case "js", "javascript":
		return kindScript, nil
	case "text":
		if regexp.MustCompile(`(?m)^ *\$ `).MatchString(b.text) {
			return 0, errors.New("contains commands, but is not a console block")
		}
		return kindDrawing, nil
	}
	if strings.HasPrefix(b.note, "not run") {
		return b.uncheckedKind()
	}
	for line := range strings.Lines(b.text) {
		if !toolCall.MatchString(strings.TrimSpace(line)) {
			return 0, errors.New("has a line that is not a tool call; name its language, or the reason why it is not run: <!-- not run: REASON -->")
		}
	}
	return kindCalls, nil
}

func (b block) uncheckedKind() (kind, error) {
	if !leftOut.MatchString(b.note) {
		return 0, fmt.Errorf("is not run, and the comment has no reason: %q", b.note)
	}
	return kindLeft, nil
}

// fileName returns the name of the file in a block, from its first line or from the comment
// above it.
func (b block) fileName() string {
	if m := fileName.FindStringSubmatch(b.text); m != nil {
		return m[1]
	}
	name, _ := strings.CutPrefix(b.note, "file: ")
	if name == b.note {
		return ""
	}
	return name
}

// skippedPrefixes returns the prefixes of the lines of a block that a comment excludes from the
// test: <!-- `BEGINNING OF THE LINE` is not run: REASON -->. Each matches exactly one line.
func (b block) skippedPrefixes() (beginnings []string, err error) {
	for _, m := range leftOut.FindAllStringSubmatch(b.note, -1) {
		if m[1] == "" {
			continue
		}
		beginnings = append(beginnings, m[1])
		if n := strings.Count("\n"+b.text, "\n"+m[1]); n != 1 {
			err = errors.Join(err, fmt.Errorf("has %d lines that begin with %q, which a comment excludes; want one", n, m[1]))
		}
	}
	if err == nil && strings.Contains(b.note, "is not run") && len(beginnings) < strings.Count(b.note, "is not run") {
		err = fmt.Errorf("the comment does not name the line that is not run, or the reason: %q", b.note)
	}
	return beginnings, err
}

// Every block of the documentation is run, or checked by the real parser, or has a comment
// with the reason why it is not. If the reason names a test, the test exists.
func TestDocumentationBlocks(t *testing.T) {
	t.Parallel()
	pool, err := sandbox.NewPool(sandbox.Options{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pool.Close(context.WithoutCancel(t.Context())) })
	tests := textOfTests(t)
	count := map[kind]int{}
	for _, p := range readPages(t) {
		if !isExecuted(p) {
			continue
		}
		for _, b := range p.blocks {
			kind, err := b.checkKind()
			count[kind]++
			leaves, wrong := b.skippedPrefixes()
			err = errors.Join(err, wrong)
			count[kindLeft] += len(leaves)
			switch kind {
			case kindData:
				err = errors.Join(err, parseBlock(t, b))
			case kindScript:
				err = errors.Join(err, compileScript(t, pool, b))
			case kindDrawing:
				err = errors.Join(err, checkUsages(b))
			}
			if err != nil {
				t.Errorf("%s:%d: invalid block: %v", p.name, b.line, err)
			}
			for _, name := range testName.FindAllString(b.note, -1) {
				if !strings.Contains(tests, "func "+name+"(") {
					t.Errorf("%s:%d: the test %s does not exist", p.name, b.line, name)
				}
			}
		}
	}
	if count[kindShell] < 10 || count[kindData] < 10 || count[kindScript] < 3 {
		t.Errorf("too few blocks were found: %v", count)
	}
	const most = 22 // the maximum number of blocks that are not run; no test finds errors in such blocks
	if count[kindLeft] > most {
		t.Errorf("%d blocks are not run, at most %d may be", count[kindLeft], most)
	}
	t.Logf("not run %d, shell %d, console %d, calls %d, files %d, data %d, scripts %d, drawings %d",
		count[kindLeft], count[kindShell], count[kindConsole], count[kindCalls], count[kindFile], count[kindData], count[kindScript], count[kindDrawing])
}

// parseBlock parses a block of JSON or YAML with its real parser.
func parseBlock(t *testing.T, b block) error {
	t.Helper()
	if text, only := strings.CutPrefix(strings.TrimSpace(b.text), "# yaml-language-server: $schema="); only && !strings.Contains(text, "\n") {
		return checkSchemaURL(text)
	}
	data := b.text
	if strings.HasPrefix(strings.TrimSpace(data), `"`) { // members without the enclosing object
		data = "{" + data + "}"
	}
	var object map[string]any
	if err := yaml.Unmarshal([]byte(data), &object); err != nil {
		return fmt.Errorf("cannot be read: %w", err)
	}
	if servers, ok := object["mcpServers"].(map[string]any); ok {
		return checkServerCommands(servers)
	}
	if rules, ok := object["contextRules"]; ok && len(object) == 1 {
		whole, err := yaml.Marshal(map[string]any{
			"id": "rules", "name": "Rules", "description": "d", "version": "1.0.0", "contextRules": rules,
			"steps": []any{map[string]any{"id": "one", "title": "One", "prompt": "p"}},
		})
		if err != nil {
			return err
		}
		data = string(whole)
	}
	if as := workflow.Guess("snippet.yaml", []byte(data), workflow.As{}); as.Kind != "" && slices.ContainsFunc(
		[]string{"steps", "phases", "nodes", "states", "type", "contextRules", "recognition", "capability"}, func(member string) bool { return object[member] != nil }) {
		return lintError(workflow.CheckAs("snippet.yaml", []byte(data), as))
	}
	path := filepath.Join(t.TempDir(), "guideway.json")
	if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
		return err
	}
	_, err := config.Load(config.Options{File: path, Dir: t.TempDir(), Getenv: func(name string) string {
		return map[string]string{"HOME": filepath.Dir(path)}[name]
	}})
	return err
}

// lintError returns the diagnostics of a linter as an error. Warnings count, because users
// copy these documents.
func lintError(_ *workflow.Document, found []guideway.Diagnostic) error {
	var all []error
	for _, d := range found {
		all = append(all, fmt.Errorf("%s:%d: %s", d.Code, d.Line, d.Message))
	}
	return errors.Join(all...)
}

// checkSchemaURL returns an error if an address is not the address of a published schema.
func checkSchemaURL(address string) error {
	for _, dialect := range []guideway.Dialect{guideway.DialectSteps, guideway.DialectPhases, guideway.DialectHooks, guideway.DialectMachines} {
		if bytes.Contains(workflow.Schema(workflow.As{Dialect: dialect}), []byte(`"$id": "`+address+`"`)) {
			return nil
		}
	}
	return fmt.Errorf("names an unknown schema: %s", address)
}

// checkServerCommands returns an error if the entry in a client's configuration does not
// start a guideway command.
func checkServerCommands(servers map[string]any) error {
	for name, server := range servers {
		entry, _ := server.(map[string]any)
		var words []string
		args, _ := entry["args"].([]any)
		for _, arg := range args {
			if word := fmt.Sprint(arg); word != "-y" && word != "@guideway-dev/guideway" {
				words = append(words, word)
			}
		}
		if entry["command"] == nil || len(words) == 0 {
			return fmt.Errorf("has a server %s without a command", name)
		}
		if err := checkCommandLine(strings.Join(words, " ")); err != nil {
			return err
		}
	}
	return nil
}

// compileScript parses a script in the sandbox.
func compileScript(t *testing.T, pool *sandbox.Pool, b block) error {
	t.Helper()
	found, err := pool.Check(t.Context(), sandbox.Module{Name: "snippet.js", Source: b.text, Params: []string{"context"}}, nil)
	if err != nil {
		return err
	}
	return lintError(nil, found)
}

// checkUsages returns an error if a block shows the usage of a command that does not exist.
func checkUsages(b block) error {
	for line := range strings.Lines(b.text) {
		if rest, ok := strings.CutPrefix(line, "guideway "); ok {
			rest = strings.ReplaceAll(rest, "[flags]", "")
			if err := checkCommandLine(rest); err != nil {
				return err
			}
		}
	}
	return nil
}

// textOfTests returns the source of all tests.
func textOfTests(t *testing.T) string {
	t.Helper()
	var tests strings.Builder
	err := filepath.WalkDir(filepath.Join("..", ".."), func(path string, d os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || d.Name() == ".git" || d.Name() == "dist"):
			return filepath.SkipDir
		case strings.HasSuffix(path, "_test.go"), strings.HasSuffix(path, ".txtar"), strings.HasSuffix(path, ".e2e.ts"):
			text, err := os.ReadFile(path)
			tests.Write(text)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return tests.String()
}
