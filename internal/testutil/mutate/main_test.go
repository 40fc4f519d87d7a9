package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMutants runs the mutants of a small package whose tests notice all mutants except
// those of one bound and those that are listed as equivalent.
func TestMutants(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example.com/sample\n\ngo 1.26\n",
		"p/p.go": `package p

func allowed(n int, names []string) (ok bool) {
	if n < 10 && len(names) > 0 {
		ok = true
	}
	switch {
	case n == 3 || n == 4 || n == 5:
		return !ok
	}
	return ok
}
`,
		"p/p_test.go": `package p

import "testing"

func TestAllowed(t *testing.T) {
	one := []string{"a"}
	if !allowed(1, one) || allowed(20, one) || allowed(1, nil) || allowed(3, one) || allowed(4, one) || allowed(5, one) {
		t.Fatal("wrong")
	}
}
`,
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	var out bytes.Buffer
	err := testAll(t.Context(), &out, []string{"-least", "100", "./p"})
	want := `at most 20 mutants of each package, seed 1
p/p.go:4: not noticed: p/p.go allowed: the bound is moved: n < 10
p: 15 of 16 mutants noticed
all: 15 of 16 mutants noticed (93.8 %)
`
	if out.String() != want || err == nil || !strings.Contains(err.Error(), "less than 100 %") {
		t.Errorf("%s\n%v", out.String(), err)
	}
	if err := testAll(t.Context(), &out, []string{"-least", "90", "./p"}); err != nil {
		t.Errorf("with a lower minimum, testAll returned %v", err)
	}
}

// TestEquivalents checks that each equivalent mutant has a reason.
func TestEquivalents(t *testing.T) {
	t.Parallel()
	if _, err := parseEquivalents(equivalents); err != nil {
		t.Error(err)
	}
	known, err := parseEquivalents("# comment\n\na.go f: kind: x != y // they are equal\n")
	if err != nil || len(known) != 1 || !known["a.go f: kind: x != y"] {
		t.Errorf("%v, %v", known, err)
	}
	if _, err := parseEquivalents("a.go f: kind: x != y\n"); err == nil {
		t.Error("a mutant without a reason is accepted")
	}
}
