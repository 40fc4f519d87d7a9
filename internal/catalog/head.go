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

// Head describes a workflow in lists. It is part of the index, so that the workflow need
// not be read (see Options.Index).
type Head struct {
	ID          string           `json:"id"`
	Name        string           `json:"name,omitempty"`
	Description string           `json:"description,omitempty"`
	Version     string           `json:"version,omitempty"`
	Dialect     guideway.Dialect `json:"dialect"`
	// Hash is the hash of the definition. Runs are pinned to it.
	Hash string `json:"hash"`
	// Steps is the number of steps of a step workflow, or of all phases of a phase
	// workflow; a loop counts as one step. Phases is the number of phases of a phase
	// workflow.
	Steps  int `json:"steps,omitempty"`
	Phases int `json:"phases,omitempty"`
	// Size is the number of bytes of the definition as canonical JSON.
	Size int `json:"size,omitempty"`
}

// NewHead returns the head of a definition.
func NewHead(d *workflow.Definition) Head {
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

// detach returns the head with copies of its texts. The texts of NewHead are parts of the
// definition's text and would keep all of it in memory.
func (h Head) detach() Head {
	for _, text := range []*string{&h.ID, &h.Name, &h.Description, &h.Version, &h.Hash} {
		*text = strings.Clone(*text)
	}
	h.Dialect = guideway.Dialect(strings.Clone(string(h.Dialect)))
	return h
}

// loadedVersion is a version of a document that loaded.
type loadedVersion struct {
	head Head
	path string
	// content returns the current text, or nil if the document can no longer be read.
	content func() []byte
	catalog *Catalog

	// definition is nil until it is needed, if the version is in the index. It is then
	// parsed from text, or from the result of fetch if there is no text. The index contains
	// the hash of these bytes.
	definition atomic.Pointer[workflow.Definition]
	reading    sync.Mutex // reading guards text.
	text       []byte     // the text of a definition that was not needed yet, or nil
	fetch      func() ([]byte, *guideway.Diagnostic)

	mu sync.Mutex // mu guards the diagnostics and their layout.
	// linted reports that found is set; layout is the documents that the linter used.
	linted bool
	layout phases.Layout
	found  []guideway.Diagnostic
}

// newParsed returns a version that was parsed. If it will be in the index, its definition
// is dropped: the text takes a third of the memory, and most processes never need the
// definition.
func (c *Catalog) newParsed(d *workflow.Definition, document Document, text []byte, found []guideway.Diagnostic) *loadedVersion {
	if c.opts.Index != "" && len(found) == 0 {
		return c.newIndexed(NewHead(d).detach(), document, text)
	}
	l := &loadedVersion{head: NewHead(d), path: document.Path, content: c.contentReader(document), catalog: c}
	l.definition.Store(d)
	return l
}

// newIndexed returns a version whose head is in the index. Its definition is parsed when it
// is needed. text may be nil if the current document has the hash that is in the index.
func (c *Catalog) newIndexed(head Head, document Document, text []byte) *loadedVersion {
	return &loadedVersion{
		head: head, path: document.Path, content: c.contentReader(document), catalog: c, text: text,
		fetch: func() ([]byte, *guideway.Diagnostic) { return c.readContent(context.Background(), document) },
	}
}

// readDefinition returns the definition, and parses it on the first call. If the text is
// not available, or if its head differs from the head in the index, it returns an error,
// and the catalog reads its sources again.
func (l *loadedVersion) readDefinition() (*workflow.Definition, error) {
	if d := l.definition.Load(); d != nil {
		return d, nil
	}
	l.reading.Lock()
	defer l.reading.Unlock()
	if d := l.definition.Load(); d != nil {
		return d, nil
	}
	text := l.text
	if text == nil {
		fetched, problem := l.fetch()
		if problem != nil {
			return nil, l.reportStale(problem.Message, problem.Fix)
		}
		text = fetched
	}
	d, found := l.catalog.parseDefinition(l.path, text)
	if d == nil || len(found) > 0 || NewHead(d) != l.head {
		return nil, l.reportStale("the definition differs from the index of its source", "")
	}
	l.text = nil
	l.definition.Store(d)
	return d, nil
}

// reportStale returns an error, and makes the catalog read its sources again because the
// index is wrong.
func (l *loadedVersion) reportStale(why, fix string) error {
	l.catalog.distrustIndex()
	return guideway.Errorf(guideway.CodeUnavailable, "the workflow '%s' could not be read from %s: %s", l.head.ID, l.path, why).
		WithFix("%s", cmp.Or(fix, "repeat the call: the source is read again"))
}

// resolved returns the version with its definition read, because the text may be deleted
// soon. It returns nil if the definition cannot be read.
func (l *loadedVersion) resolved() *loadedVersion {
	if l == nil {
		return nil
	}
	if _, err := l.readDefinition(); err != nil {
		return nil
	}
	return l
}

// lintFor returns the linter's diagnostics with the documents next to the definition. It
// caches them until those documents change.
func (l *loadedVersion) lintFor(layout phases.Layout) []guideway.Diagnostic {
	d, err := l.readDefinition()
	if err != nil {
		return []guideway.Diagnostic{newError("file-unreadable", l.path, err.Error(), guideway.ErrorFix(err))}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.linted || !slices.Equal(l.layout.Guides, layout.Guides) || (l.layout.Guides == nil) != (layout.Guides == nil) {
		l.linted, l.layout = true, layout
		l.found = l.catalog.lintDefinition(d, l.content(), layout)
	}
	return l.found
}

// parseDefinition parses a workflow. A panic of the parser only fails this document.
func (c *Catalog) parseDefinition(path string, data []byte) (d *workflow.Definition, found []guideway.Diagnostic) {
	defer func() {
		if failure := recover(); failure != nil {
			d, found = nil, []guideway.Diagnostic{parserFailed(path, failure)}
		}
	}()
	return c.opts.Parse(path, data)
}

func parserFailed(path string, failure any) guideway.Diagnostic {
	return newError("parser-failed", path,
		fmt.Sprintf("the parser failed on this document, which is a bug: %v", failure), "report the bug, with the document")
}

// distrustIndex requests a load that reads all documents, because an index or a copy is
// wrong.
func (c *Catalog) distrustIndex() {
	c.distrusted.Store(true)
	select {
	case c.distrustSignal <- struct{}{}:
	default: // a pending signal is enough
	}
}

// resetDistrusted removes the indexes and the cached hashes if they are distrusted, so that
// the next load reads all documents. It reports whether it did so.
func (c *Catalog) resetDistrusted() bool {
	if !c.distrusted.Swap(false) {
		return false
	}
	for i := range c.states {
		s := &c.states[i]
		c.removeIndex(s.info)
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
