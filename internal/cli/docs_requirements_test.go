package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestRequirements checks that the evidence in each row of the requirements exists: tests
// by their names, browser tests by their titles, scripts, packages and make targets.
func TestRequirements(t *testing.T) {
	t.Parallel()
	tests := textOfTests(t)
	list := readPages(t)
	i := slices.IndexFunc(list, func(p page) bool { return p.name == "docs/requirements.md" })
	makefile, err := os.ReadFile(filepath.Join("..", "..", "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for line := range strings.Lines(list[i].text) {
		cells := strings.Split(strings.ReplaceAll(line, `\|`, ""), "|")
		if len(cells) < 4 || !regexp.MustCompile(`^ [A-Z]+[0-9]+[a-z]? $`).MatchString(cells[1]) {
			continue
		}
		rows++
		for _, missing := range checkMissing(cells[3], tests, string(makefile)) {
			t.Errorf("the row%sis shown by %s, which does not exist", cells[1], missing)
		}
	}
	if rows < 90 {
		t.Errorf("only %d rows were found, want at least 90", rows)
	}
	for _, wrong := range []string{"", "`TestNoSuch`", `"no such words of a test"`, "the script no_such", "internal/nosuch", "`make nosuch`"} {
		if len(checkMissing(wrong, tests, string(makefile))) == 0 {
			t.Errorf("checkMissing accepts the missing evidence %q", wrong)
		}
	}
}

// checkMissing returns the names in a cell that do not exist.
func checkMissing(cell, tests, makefile string) (missing []string) {
	if strings.TrimSpace(cell) == "" {
		return []string{"nothing"}
	}
	for _, m := range regexp.MustCompile(`\b((?:Test|Benchmark|Fuzz)[A-Z]\w*)(…?)`).FindAllStringSubmatch(cell, -1) {
		if !strings.Contains(tests, "func "+m[1]+"(") && (m[2] == "" || !strings.Contains(tests, "func "+m[1])) {
			missing = append(missing, m[0])
		}
	}
	for _, m := range regexp.MustCompile(`"([^"]+)"`).FindAllStringSubmatch(cell, -1) {
		if !strings.Contains(tests, `test("`+m[1]+`"`) {
			missing = append(missing, m[0])
		}
	}
	for _, m := range regexp.MustCompile(`\bscripts? ([a-z_]+/[a-z_-]+|no_such)`).FindAllStringSubmatch(cell, -1) {
		if _, err := os.Stat(filepath.Join("testdata", "script", m[1]+".txtar")); err != nil {
			missing = append(missing, m[0])
		}
	}
	for _, m := range regexp.MustCompile(`(?:^|[\s(./])((?:internal|ui|bench|conformance|workflows)/[\w./-]*\w)`).FindAllStringSubmatch(cell, -1) {
		if _, err := os.Stat(filepath.Join("..", "..", filepath.FromSlash(m[1]))); err != nil {
			missing = append(missing, m[1])
		}
	}
	for _, m := range regexp.MustCompile("`make ([a-z-]+)`").FindAllStringSubmatch(cell, -1) {
		if !strings.Contains(makefile, "\n"+m[1]+":") {
			missing = append(missing, m[0])
		}
	}
	return missing
}

// TestSecurityGuarantees checks docs/security.md: each row of its tables of threats and of
// ways to open a human approval, and each guarantee about outputs that wait for approval,
// names a test. Each test that the page names exists.
func TestSecurityGuarantees(t *testing.T) {
	t.Parallel()
	tests := textOfTests(t)
	list := readPages(t)
	text := list[slices.IndexFunc(list, func(p page) bool { return p.name == "docs/security.md" })].text
	_, protected, _ := strings.Cut(text, "## What is protected")
	protected, _, _ = strings.Cut(protected, "## What is not protected")
	evidence := regexp.MustCompile(`\bTest[A-Z]|\bscripts? [a-z]+/|"`)
	guarantees := 0
	for line := range strings.Lines(protected) {
		if !strings.HasPrefix(line, "- ") && !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| Against") || strings.HasPrefix(line, "| Way") {
			continue
		}
		guarantees++
		if !evidence.MatchString(line) {
			t.Errorf("the guarantee names no test: %s", line)
		}
		for _, missing := range checkMissing(line, tests, "") {
			t.Errorf("the guarantee names %s, which does not exist: %s", missing, line)
		}
	}
	if guarantees < 40 {
		t.Errorf("only %d guarantees were found, want at least 40", guarantees)
	}
	for _, name := range regexp.MustCompile(`\bTest[A-Z]\w+`).FindAllString(text, -1) {
		if !strings.Contains(tests, "func "+name+"(") {
			t.Errorf("the page names %s, which does not exist", name)
		}
	}
}
