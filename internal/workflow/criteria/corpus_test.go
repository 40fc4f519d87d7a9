package criteria_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	criteriapkg "github.com/guideway-dev/guideway/internal/workflow/criteria"
	"github.com/guideway-dev/guideway/internal/workflow/expr"
)

// TestCorpus compiles and checks the criteria of the corpus.
func TestCorpus(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..", "..", "shared", "corpus", "steps", "workflows")
	if _, err := os.Stat(root); errors.Is(err, fs.ErrNotExist) {
		t.Skip("the corpus is not available")
	}
	patterns := 0
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".json" {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var document any
		if json.Unmarshal(content, &document) != nil {
			return nil // one file of the corpus is empty
		}
		visitCriteria(document, func(criteria any) {
			c := criteriapkg.Parse(criteria)
			for _, p := range c.Diagnostics() {
				if !p.Warning {
					t.Errorf("%s: %+v", entry.Name(), p)
				}
			}
			if _, err := c.Check("## Title: DONE\n- [ ] an output", expr.Map(nil)); err != nil {
				t.Errorf("%s: %v", entry.Name(), err)
			}
			if words := c.String(); strings.Contains(words, "unusable") || words == "" {
				t.Errorf("%s: the description is %q", entry.Name(), words)
			}
			patterns += strings.Count(c.String(), "matches /")
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if patterns < 50 {
		t.Errorf("the corpus has %d patterns, want at least 50", patterns)
	}
}

// visitCriteria calls a function with the criteria in a document.
func visitCriteria(v any, found func(criteria any)) {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			if key == "validationCriteria" {
				found(value)
				continue
			}
			visitCriteria(value, found)
		}
	case []any:
		for _, value := range v {
			visitCriteria(value, found)
		}
	}
}

// TestCheckConcurrently checks outputs concurrently with one criterion, like runs of one
// definition.
func TestCheckConcurrently(t *testing.T) {
	t.Parallel()
	c := criteriapkg.Parse(decodeJSON(t, `[{"type":"regex","pattern":"^\\{","message":"m"},
		{"type":"schema","message":"m","schema":{"type":"object","patternProperties":{"^a":{"type":"number"}}}}]`))
	var wait sync.WaitGroup
	for i := range 8 {
		wait.Go(func() {
			output, want := `{"a":1}`, true
			if i%2 == 0 {
				output, want = `{"a":"1"}`, false
			}
			for range 50 {
				result, err := c.Check(output, nil)
				if err != nil || result.Valid != want {
					t.Errorf("check %s = %+v, %v", output, result, err)
					return
				}
			}
		})
	}
	wait.Wait()
}

// TestCheckByHand uses criteria that Parse did not create.
func TestCheckByHand(t *testing.T) {
	t.Parallel()
	c := &criteriapkg.Criterion{Type: criteriapkg.And, Of: []*criteriapkg.Criterion{
		{Type: criteriapkg.Regex, Pattern: "^[", Flags: "i"},
	}}
	if _, err := c.Check("x", nil); err == nil {
		t.Error("no error for a pattern that does not compile")
	}
	c.Of[0] = &criteriapkg.Criterion{Type: criteriapkg.Schema, Schema: map[string]any{"type": "object"}}
	result, err := c.Check("{}", nil)
	if err != nil || !result.Valid {
		t.Errorf("check = %+v, %v", result, err)
	}
}

// FuzzCheck checks that Check returns an error only for criteria that have an error
// diagnostic, and issues only for invalid outputs.
func FuzzCheck(f *testing.F) {
	f.Add(`[{"type":"contains","value":"a","message":"m"},{"type":"length","min":1,"max":2,"message":"m"}]`, "a")
	f.Add(`{"or":[{"type":"regex","pattern":"^(a+)+$","flags":"i"},{"not":{"type":"schema","schema":{"type":"object"}}}]}`, "{}")
	f.Add(`[{"type":"schema","schema":{"$ref":"#/definitions/a","definitions":{"a":{"items":{"$ref":"#"}}}}}]`, "[[1]]")
	f.Add(`[{"type":"contains","value":"a","condition":{"var":"x","equals":null}}]`, "")
	f.Fuzz(func(t *testing.T, criteria, output string) {
		if len(criteria) > 2000 || len(output) > 10_000 {
			return
		}
		var v any
		if json.Unmarshal([]byte(criteria), &v) != nil {
			return
		}
		c := criteriapkg.Parse(v)
		_ = c.String()
		bad := false
		for _, p := range c.Diagnostics() {
			bad = bad || !p.Warning
		}
		result, err := c.Check(output, nil)
		switch {
		case err != nil && !bad:
			t.Errorf("%s has no diagnostic, but Check fails: %v", criteria, err)
		case err != nil:
		case result.Valid != (len(result.Issues) == 0):
			t.Errorf("%s on %q: %+v", criteria, output, result)
		}
	})
}

func BenchmarkCheck(b *testing.B) {
	benchmarks := []struct{ name, criteria, output string }{
		{"rules", `[{"type":"contains","value":"DONE","message":"m"},{"type":"length","min":5,"max":20000,"message":"m"},
			{"type":"regex","pattern":"(?i)##?\\s*Title:?","message":"m"}]`, strings.Repeat("some text ", 500) + "## title DONE"},
		{"schema", `[{"type":"schema","message":"m","schema":{"type":"object","required":["a"],"properties":{"a":{"type":"number"}}}}]`, `{"a":1}`},
	}
	for _, bb := range benchmarks {
		b.Run(bb.name, func(b *testing.B) {
			c := criteriapkg.Parse(decodeJSON(b, bb.criteria))
			b.ReportAllocs()
			for b.Loop() {
				if result, err := c.Check(bb.output, nil); err != nil || !result.Valid {
					b.Fatal(result, err)
				}
			}
		})
	}
}
