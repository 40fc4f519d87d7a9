package catalog

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/workflow"
	"github.com/guideway-dev/guideway/internal/workflow/phases"
)

// Head is what lists tell of a workflow. It is known without the workflow being
// read, where an index has it (see Options.Index).
type Head struct {
	ID          string           `json:"id"`
	Name        string           `json:"name,omitempty"`
	Description string           `json:"description,omitempty"`
	Version     string           `json:"version,omitempty"`
	Dialect     guideway.Dialect `json:"dialect"`
	// Hash is that of the definition, which pins what it means.
	Hash string `json:"hash"`
	// Steps counts the steps, a loop as one, and Phases the phases.
	Steps  int `json:"steps,omitempty"`
	Phases int `json:"phases,omitempty"`
	// Size counts the bytes of the definition as canonical JSON.
	Size int `json:"size,omitempty"`
}

// HeadOf is the head of a definition.
func HeadOf(d *workflow.Definition) Head {
	h := Head{ID: d.ID, Name: d.Name, Description: d.Description, Version: d.Version, Dialect: d.Dialect, Hash: d.Hash, Size: len(d.Canonical)}
	switch {
	case d.Phases != nil:
		h.Phases = len(d.Phases.Phases)
		for i := range d.Phases.Phases {
			h.Steps += len(d.Phases.Phases[i].Steps) + len(d.Phases.Phases[i].Loops)
		}
	case d.Steps != nil:
		h.Steps = len(d.Steps.Walked())
	}
	return h
}

// apart is the head with texts of its own: those of HeadOf are parts of the
// definition's, and would keep all of it in memory.
func (h Head) apart() Head {
	for _, text := range []*string{&h.ID, &h.Name, &h.Description, &h.Version, &h.Hash} {
		*text = strings.Clone(*text)
	}
	h.Dialect = guideway.Dialect(strings.Clone(string(h.Dialect)))
	return h
}

// loaded is a version of a document that loads.
type loaded struct {
	head Head
	path string
	// content gives the text as it is now, or nothing if it is gone.
	content func() []byte
	catalog *Catalog

	// read is the definition. It is nil until somebody needs it where the head came
	// from an index; then text is what it is read from, or nil where fetch is to give
	// it. Either is the one that the index has by its hash.
	read    atomic.Pointer[workflow.Definition]
	reading sync.Mutex // guards text
	text    kept
	fetch   func() ([]byte, *guideway.Diagnostic)

	mu sync.Mutex // guards the findings, and what they were made for
	// linted says that there are findings, layout what lay beside then.
	linted bool
	layout phases.Layout
	found  []guideway.Diagnostic
}

// parsed is a version that was read. What the index will know of is held as if it had
// known it before: the text takes a third of the memory of the definition, which
// most processes never ask for.
func (c *Catalog) parsed(d *workflow.Definition, document Document, text []byte, found []guideway.Diagnostic) *loaded {
	if c.opts.Index != "" && len(found) == 0 {
		return c.remembered(HeadOf(d).apart(), document, text)
	}
	l := &loaded{head: HeadOf(d), path: document.Path, content: c.reader(document), catalog: c}
	l.read.Store(d)
	return l
}

// remembered is a version that an index knows, and that is read when it is needed. text
// may be nil where the document knows its hash.
func (c *Catalog) remembered(head Head, document Document, text []byte) *loaded {
	return &loaded{
		head: head, path: document.Path, content: c.reader(document), catalog: c, text: kept{bytes: text},
		fetch: func() ([]byte, *guideway.Diagnostic) { return c.content(context.Background(), document) },
	}
}

// open gives the definition, which is read from the very bytes that the hash was made
// of. Where those are not to be had, or mean something else than the index says,
// nothing is given, and the catalog reads its sources anew.
func (l *loaded) open() (*workflow.Definition, error) {
	if d := l.read.Load(); d != nil {
		return d, nil
	}
	l.reading.Lock()
	defer l.reading.Unlock()
	if d := l.read.Load(); d != nil {
		return d, nil
	}
	text, err := l.text.text()
	if err != nil {
		return nil, l.unread("what is kept of it is damaged: "+err.Error(), "")
	}
	if text == nil {
		fetched, problem := l.fetch()
		if problem != nil {
			return nil, l.unread(problem.Message, problem.Fix)
		}
		text = fetched
	}
	d, found := l.catalog.parseDefinition(l.path, text)
	if d == nil || len(found) > 0 || HeadOf(d) != l.head {
		return nil, l.unread("it is not what the index of its source says", "")
	}
	l.text = kept{}
	l.read.Store(d)
	return d, nil
}

// pack makes small what is kept until the definition is asked for.
func (l *loaded) pack() {
	l.reading.Lock()
	defer l.reading.Unlock()
	l.text = l.text.pack()
}

// unread has the sources read anew, for what was known of this one is wrong.
func (l *loaded) unread(why, fix string) error {
	l.catalog.doubt()
	return guideway.Errorf(guideway.CodeUnavailable, "the workflow '%s' could not be read from %s: %s", l.head.ID, l.path, why).
		WithFix("%s", cmp.Or(fix, "ask again: it is looked for anew"))
}

// lasting is the version where it can be read, which it is at once: its text may soon
// be gone. Otherwise it is nil.
func (l *loaded) lasting() *loaded {
	if l == nil {
		return nil
	}
	if _, err := l.open(); err != nil {
		return nil
	}
	return l
}

// lint gives the linter's findings where this lies beside the definition. They
// are kept until something else lies there.
func (l *loaded) lint(layout phases.Layout) []guideway.Diagnostic {
	d, err := l.open()
	if err != nil {
		return []guideway.Diagnostic{problem("file-unreadable", l.path, err.Error(), guideway.ErrorFix(err))}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.linted || !slices.Equal(l.layout.Guides, layout.Guides) || (l.layout.Guides == nil) != (layout.Guides == nil) {
		l.linted, l.layout = true, layout
		l.found = l.catalog.lint(d, l.content(), layout)
	}
	return l.found
}

// parseDefinition reads a workflow. It keeps a defect of the parser that one document
// meets from taking the others along.
func (c *Catalog) parseDefinition(path string, data []byte) (d *workflow.Definition, found []guideway.Diagnostic) {
	defer func() {
		if failure := recover(); failure != nil {
			d, found = nil, []guideway.Diagnostic{parserFailed(path, failure)}
		}
	}()
	return c.opts.Parse(path, data)
}

func parserFailed(path string, failure any) guideway.Diagnostic {
	return problem("parser-failed", path,
		fmt.Sprintf("the parser failed on this document, which is a defect of the program: %v", failure), "report it, with the document")
}

// doubt has everything read anew at the next load, which it asks for: an index, or a
// copy, is not what it was.
func (c *Catalog) doubt() {
	c.doubted.Store(true)
	select {
	case c.doubts <- struct{}{}:
	default: // one that waits says the same
	}
}

// reconsider forgets what makes documents pass as known, if there is doubt. It says
// whether there was.
func (c *Catalog) reconsider() bool {
	if !c.doubted.Swap(false) {
		return false
	}
	for i := range c.states {
		s := &c.states[i]
		c.forget(s.info)
		records := make([]*record, len(s.records))
		for j, r := range s.records {
			anew := *r
			anew.stamp, anew.sum = "", [sha256.Size]byte{}
			records[j] = &anew
		}
		s.records = records
	}
	return true
}
