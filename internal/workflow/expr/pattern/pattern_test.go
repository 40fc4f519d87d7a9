package pattern_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/guideway-dev/guideway/internal/workflow/expr/pattern"
)

func TestMatch(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, source, flags, text string
		want                      bool
	}{
		{"digits are ASCII", `^\d$`, "", "٣", false},
		{"words are ASCII", `^\w$`, "", "é", false},
		{"space", `^\s$`, "", "\uFEFF", true},
		{"dot does not match a line break", `^a.b$`, "", "a\nb", false},
		{"dot does not match a carriage return", `^a.b$`, "", "a\rb", false},
		{"s", `^a.b$`, "s", "a\nb", true},
		{"end", `a$`, "", "a\n", false},
		{"m", `a$`, "m", "a\nb", true},
		{"i", `DONE`, "i", "done", true},
		{"u", `^\u{1F600}$`, "u", "😀", true},
		{"g and d", `a`, "gd", "ba", true},
		{"y", `a`, "y", "ba", false},
		{"y at the start", `a`, "y", "ab", true},
		{"anything", `^[^]$`, "", "\n", true},
		{"nothing", `[]`, "", "a", false},
		{"escaped slash", `a\/b`, "", "a/b", true},
		{"lookbehind", `(?<=a)b`, "", "ab", true},
		{"back reference", `(?<q>['"]).*\k<q>`, "", `"a"`, true},
		{"inline flag", `(?i)done`, "", "DONE", true},
		{"brace", `{{\w+}}`, "", "{{name}}", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p, err := pattern.Compile(tt.source, tt.flags)
			if err != nil {
				t.Fatalf("compile %s: %v", tt.source, err)
			}
			got, err := p.Match(tt.text)
			if err != nil || got != tt.want {
				t.Errorf("/%s/%s on %q = %v, %v; want %v", tt.source, tt.flags, tt.text, got, err, tt.want)
			}
		})
	}
}

func TestCompileErrors(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, source, flags, want string }{
		{"class", `[`, "", "unterminated [] set"},
		{"group", `(a`, "", "missing closing )"},
		{"repetition", `*`, "", "missing argument to repetition operator"},
		{"flag", `a`, "x", `unknown flag 'x'`},
		{"flag twice", `a`, "gg", `flag 'g' is given twice`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := pattern.Compile(tt.source, tt.flags)
			if err == nil || err.Error() != tt.want {
				t.Errorf("error = %v, want %s", err, tt.want)
			}
		})
	}
}

func TestMatchIsBounded(t *testing.T) {
	t.Parallel()
	for _, flags := range []string{"", "y"} {
		p, err := pattern.Compile(`^(a+)+$`, flags)
		if err != nil {
			t.Fatal(err)
		}
		var wait sync.WaitGroup
		for range 3 {
			wait.Go(func() {
				start := time.Now()
				_, err := p.Match(strings.Repeat("a", 60) + "!")
				if !errors.Is(err, pattern.ErrTooLong) {
					t.Errorf("error = %v", err)
				}
				// Ten times the limit leaves room for a busy machine.
				if took := time.Since(start); took > 10*pattern.Limit {
					t.Errorf("took %v", took)
				}
			})
		}
		wait.Wait()
	}
}

// FuzzMatch searches for a pattern that causes a panic or does not end.
func FuzzMatch(f *testing.F) {
	f.Add(`^(a+)+$`, "i", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!")
	f.Add(`(?i)##?\s*Title:?`, "", "## title")
	f.Add(`(?<a>x)\k<a>|[^]{2,}?\u{41}(?!b)`, "gimsuy", "xx")
	f.Fuzz(func(t *testing.T, source, flags, text string) {
		if len(source) > 1000 {
			return
		}
		p, err := pattern.Compile(source, flags)
		if err != nil {
			return
		}
		start := time.Now()
		_, _ = p.Match(text)
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("/%s/%s on %q took %v", source, flags, text, took)
		}
	})
}
