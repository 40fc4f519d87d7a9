package quality

import (
	"encoding/json"
	"fmt"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway/internal/contexts/compress"
	"github.com/guideway-dev/guideway/internal/testutil/gosource"
)

// filler is real technical text: comments and code of Go's standard library.
type filler struct {
	prose []string
	code  []string
}

func readFiller(t testing.TB) filler {
	t.Helper()
	root := gosource.Dir()
	var f filler
	for _, dir := range []string{"net/http", "database/sql", "encoding/json", "os", "runtime", "crypto/tls", "go/types", "text/template", "time"} {
		files, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") || len(f.prose) > 4000 {
				continue
			}
			f.readSource(t, name)
		}
	}
	if len(f.prose) < 500 {
		t.Skipf("only %d paragraphs below %s: the sources of the standard library are missing", len(f.prose), root)
	}
	return f
}

func (f *filler) readSource(t testing.TB, name string) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ParseComments)
	if err != nil {
		return // a file for a different Go version
	}
	for i, group := range parsed.Comments {
		if i == 0 {
			continue // skip the license
		}
		for paragraph := range strings.SplitSeq(group.Text(), "\n\n") {
			paragraph = strings.Join(strings.Fields(paragraph), " ")
			if len(paragraph) > 120 && len(paragraph) < 900 && strings.Contains(paragraph, ". ") {
				f.prose = append(f.prose, paragraph)
			}
		}
	}
	if len(text) > 2000 {
		f.code = append(f.code, string(text[1000:2000]))
	}
}

// session is a context with facts planted in it.
type session struct {
	items []compress.Item
	facts []fact
	// asked are the facts that the question covers.
	asked    map[int]bool
	question string
}

// part is one text of a session, with its age.
type part struct {
	key        string
	age        int
	paragraphs []string
	list       bool
}

// makeSession builds a context of about 12,000 tokens, like the context of a run after some
// steps: prose, lists, code and a log, with perKind facts of each kind.
func makeSession(t testing.TB, r *rand.Rand, f filler, counter compress.Counter, kinds []string, perKind int) session {
	t.Helper()
	s := session{asked: map[int]bool{}}
	parts := []*part{
		{key: "backgroundNotes", age: 9},
		{key: "documentation", age: 8},
		{key: "transcriptOfStep1", age: 7},
		{key: "findings", age: 6, list: true},
		{key: "transcriptOfStep2", age: 4},
		{key: "analysis", age: 3},
		{key: "implementationPlan", age: 2},
		{key: "notes", age: 1},
		{key: "stepOutput", age: 0},
	}
	for _, p := range parts {
		for range 12 {
			p.paragraphs = append(p.paragraphs, f.prose[r.IntN(len(f.prose))])
		}
	}
	names := factSubjects()
	r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for _, kind := range kinds {
		for range perKind {
			made := makeFact(r, kind, names[len(s.facts)])
			at := r.IntN(len(parts))
			if len(made.texts) == 2 { // plant the new sentence in a newer part, or further down in the same part
				first := r.IntN(at + 1)
				plantSentence(r, parts[first], made.texts[0], 0, 0.5)
			}
			plantSentence(r, parts[at], made.texts[len(made.texts)-1], 0.5*float64(len(made.texts)-1), 1)
			s.facts = append(s.facts, made)
		}
	}
	for i := range s.facts {
		if i%3 == 0 {
			s.asked[i] = true
		}
	}
	s.question = sessionQuestion(s)
	s.items = itemsOf(t, r, parts, f, counter)
	return s
}

// sessionQuestion returns a question about the subjects of the asked facts.
func sessionQuestion(s session) string {
	var b strings.Builder
	b.WriteString("Write the hand-over of this work. Say what is known of")
	for i, f := range s.facts {
		if s.asked[i] {
			b.WriteString(" the " + f.subject + ",")
		}
	}
	return b.String() + " and what is left to do."
}

// plantSentence inserts a sentence into a paragraph of the part, between the relative
// positions from and to.
func plantSentence(r *rand.Rand, p *part, sentence string, from, to float64) {
	low := int(from * float64(len(p.paragraphs)))
	i := low + r.IntN(max(int(to*float64(len(p.paragraphs)))-low, 1))
	ends := []int{0, len(p.paragraphs[i])}
	for at := range len(p.paragraphs[i]) - 2 {
		if p.paragraphs[i][at:at+2] == ". " {
			ends = append(ends, at+2)
		}
	}
	at := ends[r.IntN(len(ends))]
	before, after := strings.TrimRight(p.paragraphs[i][:at], " "), p.paragraphs[i][at:]
	p.paragraphs[i] = strings.TrimSpace(before + " " + sentence + " " + after)
}

// itemsOf returns the items, the oldest first.
func itemsOf(t testing.TB, r *rand.Rand, parts []*part, f filler, counter compress.Counter) []compress.Item {
	t.Helper()
	c := compress.Context{}
	ages := map[string]int{}
	put := func(key string, age int, value any) {
		text, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		c[key], ages[key] = text, age
	}
	for _, p := range parts {
		if p.list {
			put(p.key, p.age, p.paragraphs)
		} else {
			put(p.key, p.age, strings.Join(p.paragraphs, "\n\n"))
		}
	}
	var log strings.Builder
	for i := range 60 {
		fmt.Fprintf(&log, "2026-03-01T10:%02d:%02dZ INFO served path=/api/%d status=200 in %d ms\n", i/60, i%60, r.IntN(500), r.IntN(90))
	}
	put("serverOutput", 5, log.String())
	put("sourceCode", 5, f.code[r.IntN(len(f.code))]+f.code[r.IntN(len(f.code))])
	items := compress.Items(c, compress.NewClassifier(compress.Hints{}), counter)
	for i := range items {
		items[i].Age = ages[items[i].Key]
	}
	slices.SortStableFunc(items, func(a, b compress.Item) int { return b.Age - a.Age })
	return items
}
