package catalog

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog/library"
	hookdef "github.com/guideway-dev/guideway/internal/hooks/definition"
	"github.com/guideway-dev/guideway/internal/platform/safeopen"
	"github.com/guideway-dev/guideway/internal/workflow"
	"github.com/guideway-dev/guideway/internal/workflow/phases"
)

// state is the content of one source. It is immutable.
type state struct {
	info        SourceInfo
	records     []*record // records are sorted by name.
	diagnostics []guideway.Diagnostic
	loaded      time.Time
	missing     bool
	blocked     bool
	failure     string
	// machines are the agent machines of the source, and machineSum is the hash of their
	// files.
	machines   []*loadedMachine
	machineSum [sha256.Size]byte
}

// totalSize returns the number of bytes of the source's documents, which count for the
// limit of all sources.
func (s *state) totalSize() (total int64) {
	for _, r := range s.records {
		total += r.size
	}
	return total
}

// record is the content of one document. It is immutable.
type record struct {
	name, path string
	// revision is the revision of the source.
	revision string
	// place is the location in the layout of a library; empty for other documents.
	place library.Place
	// hookPlace is the location in the layout of the hooks dialect.
	hookPlace hookdef.Place
	// machineFile reports that the document is a file of an agent machine, whose text is
	// data.
	machineFile bool
	data        []byte
	size        int64
	stamp       string
	sum         [sha256.Size]byte
	// content returns the current text, or nil if the document can no longer be read.
	content func() []byte
	// good is the last version that loaded, or nil.
	good *loadedVersion
	// item is the last valid version of a library document.
	item *library.Item
	// hook is the last valid version of a hooks document.
	hook *loadedHook
	// parsedHere reports that good was parsed, and did not come from an index.
	parsedHere bool
	// broken reports that the current version does not load; found has the reason.
	broken bool
	found  []guideway.Diagnostic
	// guessedID is the id that a broken version probably has.
	guessedID string
}

// allSources selects every source.
const allSources = -1

// reloadSources reads one source, or all, and publishes the result.
func (c *Catalog) reloadSources(ctx context.Context, which int) error {
	c.loading.Lock()
	defer c.loading.Unlock()
	if c.resetDistrusted() {
		which = allSources
	}
	listings := make([]listing, len(c.sources))
	var listers sync.WaitGroup
	for i, source := range c.sources {
		switch {
		case which != allSources && which != i:
		case c.states[i].info.Level == LevelBlocked:
			listings[i] = listing{done: true, blocked: true}
		default:
			listers.Go(func() {
				listings[i] = listSource(ctx, source)
				if c.states[i].loaded.IsZero() {
					listings[i].index = c.readIndex(c.states[i].info)
				}
			})
		}
	}
	listers.Wait()
	if err := ctx.Err(); err != nil {
		return err
	}
	next := slices.Clone(c.states)
	var jobs []func()
	budget := c.opts.Limits.TotalBytes
	for i := len(next) - 1; i >= 0; i-- {
		if listings[i].done {
			jobs = append(jobs, c.newState(ctx, &next[i], listings[i], &budget)...)
			continue
		}
		budget -= next[i].totalSize()
	}
	c.runJobs(jobs)
	if err := ctx.Err(); err != nil {
		return err
	}
	for i := range next {
		if listings[i].done {
			c.assembleMachines(&next[i], &c.states[i])
		}
	}
	c.states = next
	c.publishSnapshot(mergeStates(next))
	for i := range next {
		if listings[i].done {
			c.writeIndex(&next[i])
		}
	}
	return nil
}

// listing is the result of listing a source.
type listing struct {
	done        bool
	blocked     bool
	documents   []Document
	diagnostics []guideway.Diagnostic
	index       index // index is set when the source is listed for the first time.
	err         error
}

func listSource(ctx context.Context, source Source) (l listing) {
	l.done = true
	defer func() {
		if r := recover(); r != nil {
			l.err = fmt.Errorf("the source failed: %v", r)
		}
	}()
	l.documents, l.diagnostics, l.err = source.Documents(ctx)
	return l
}

// newState makes the next state of a source from its listing, and returns the jobs that
// complete it.
func (c *Catalog) newState(ctx context.Context, s *state, l listing, budget *int64) []func() {
	previous := map[string]*record{}
	for _, r := range s.records {
		previous[r.name] = r
	}
	*s = state{info: s.info, records: s.records, diagnostics: l.diagnostics, loaded: time.Now()}
	switch {
	case l.blocked:
		s.blocked, s.records = true, nil
		return nil
	case errors.Is(l.err, ErrMissing):
		s.missing, s.records = true, nil
		if !s.info.Optional {
			s.diagnostics = append(s.diagnostics, newError("source-missing", s.info.Location,
				fmt.Sprintf("the source %q does not exist", s.info.Name), "create the directory, or remove the source from the configuration"))
		}
		return nil
	case l.err != nil:
		s.failure = safeopen.Cause(l.err).Error()
		message := fmt.Sprintf("the source %q cannot be read: %s", s.info.Name, s.failure)
		if len(s.records) > 0 {
			message += "; its earlier documents are still served"
		}
		s.diagnostics = append(s.diagnostics, newError("source-unreadable", s.info.Location, message, cmp.Or(guideway.ErrorFix(l.err), "make the source readable")))
		*budget -= s.totalSize()
		return nil
	}
	documents := l.documents
	slices.SortStableFunc(documents, func(a, b Document) int { return strings.Compare(a.Name, b.Name) })
	if limit := c.opts.Limits.Files; len(documents) > limit {
		s.diagnostics = append(s.diagnostics, newError("limit-files", s.info.Location,
			fmt.Sprintf("the source %q has %d documents; only the first %d by name are read", s.info.Name, len(documents), limit),
			"move the workflows to a separate directory"))
		documents = documents[:limit]
	}
	l.documents = documents
	return c.fillRecords(ctx, s, l, previous, budget)
}

// fillRecords fills in the records of a state. It keeps the records of unchanged documents,
// and returns jobs that read the other documents.
func (c *Catalog) fillRecords(ctx context.Context, s *state, l listing, previous map[string]*record, budget *int64) []func() {
	var jobs []func()
	left := 0
	s.records = make([]*record, 0, len(l.documents))
	for _, document := range l.documents {
		// A document over its own limit is not read, and counts only up to the limit.
		size := min(document.Size, c.opts.Limits.FileBytes)
		if *budget -= size; *budget < 0 {
			left++
			continue
		}
		known := previous[document.Name]
		if known != nil && document.Stamp != "" && document.Stamp == known.stamp {
			if known.revision != document.Revision {
				moved := *known
				moved.revision = document.Revision
				known = &moved
			}
			s.records = append(s.records, known)
			continue
		}
		fresh := &record{
			name: document.Name, path: document.Path, revision: document.Revision, hookPlace: hookdef.PlaceOf(document.Name), size: size, stamp: document.Stamp,
			content: c.contentReader(document),
		}
		if fresh.machineFile = isMachineFile(document.Name); fresh.machineFile {
			fresh.hookPlace = hookdef.Place{}
		} else if fresh.hookPlace.Kind == "" {
			fresh.place = library.PlaceOf(document.Name)
		}
		s.records = append(s.records, fresh)
		if c.fillFromIndex(fresh, document, l.index) {
			continue
		}
		jobs = append(jobs, func() { c.readDocument(ctx, fresh, document, known, l.index) })
	}
	if left > 0 {
		s.diagnostics = append(s.diagnostics, newError("limit-bytes", s.info.Location,
			fmt.Sprintf("all documents together are larger than %d bytes; documents of the source %q that were not read: %d",
				c.opts.Limits.TotalBytes, s.info.Name, left),
			"remove documents from a source"))
	}
	return jobs
}

// fillFromIndex fills in the record of a document from the index, so that the document need
// not be opened, and reports whether it did so. This is possible if the source knows the
// hash of the document, and the index contains this hash.
func (c *Catalog) fillFromIndex(r *record, document Document, known index) bool {
	if document.Sum == nil || document.Problem != nil || document.Size > c.opts.Limits.FileBytes {
		return false
	}
	head, ok := r.lookUpHead(known, *document.Sum)
	if ok {
		r.sum, r.good = *document.Sum, c.newIndexed(head, document, nil)
	}
	return ok
}

// runJobs runs jobs with a bounded number of workers.
func (c *Catalog) runJobs(jobs []func()) {
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(c.opts.Workers, len(jobs)) {
		workers.Go(func() {
			for i := next.Add(1); i <= int64(len(jobs)); i = next.Add(1) {
				jobs[i-1]()
			}
		})
	}
	workers.Wait()
}

// readDocument reads a document into its record. before is the record of its previous
// version, or nil.
func (c *Catalog) readDocument(ctx context.Context, r *record, document Document, before *record, known index) {
	data, finding := c.readContent(ctx, document)
	if finding == nil {
		r.sum = sha256.Sum256(data)
		if head, ok := r.lookUpHead(known, r.sum); ok {
			r.good = c.newIndexed(head, document, data)
			return
		}
		if before != nil && before.sum == r.sum {
			r.good, r.item, r.hook, r.broken, r.found, r.guessedID = before.good, before.item, before.hook, before.broken, before.found, before.guessedID
			r.data = before.data
			return
		}
		if c.parseDocument(r, document, data) {
			return
		}
	} else {
		// The reason may disappear without a change of the file.
		r.found, r.stamp = []guideway.Diagnostic{*finding}, ""
	}
	r.broken = true
	if r.machineFile {
		return
	}
	r.guessedID = r.guessRecordID(data)
	if data == nil {
		r.guessedID = cmp.Or(formerID(before), r.indexedID(known, document.Sum), r.guessedID)
	}
	if before != nil {
		r.good, r.item, r.hook = before.good.resolved(), before.item, before.hook
	}
	if id := r.servedID(); id != "" {
		r.found = append(slices.Clip(r.found), newWarning("file-stale", r.path,
			fmt.Sprintf("the last valid version of %q is served until this program exits", id),
			"fix the file, or delete it"))
	}
}

// servedID returns the id that the record serves, or "".
func (r *record) servedID() string {
	switch {
	case r.good != nil:
		return r.good.head.ID
	case r.item != nil:
		return r.item.ID
	case r.hook != nil:
		return r.hook.hookID()
	default:
		return ""
	}
}

// formerID returns the id or guessed id of the previous version, or "".
func formerID(before *record) string {
	if before == nil {
		return ""
	}
	return cmp.Or(before.servedID(), before.guessedID)
}

// indexedID returns the id that an index has for the expected hash of a document, or "" if
// the index has none or no hash is expected.
func (r *record) indexedID(known index, sum *[sha256.Size]byte) string {
	if sum == nil {
		return ""
	}
	head, _ := r.lookUpHead(known, *sum)
	return head.ID
}

// guessRecordID returns the id that a broken version probably has.
func (r *record) guessRecordID(data []byte) string {
	if r.place.IsText() {
		return r.place.ID()
	}
	id := guessID(data, r.name)
	if r.place.Kind != "" && id == stemOf(r.name) {
		return r.place.Name // the file name without its index
	}
	return id
}

// readContent reads a document within its limit.
func (c *Catalog) readContent(ctx context.Context, document Document) ([]byte, *guideway.Diagnostic) {
	if document.Problem != nil {
		return nil, document.Problem
	}
	limit := c.opts.Limits.FileBytes
	tooLarge := func() *guideway.Diagnostic {
		message := fmt.Sprintf("the file is larger than %d bytes", limit)
		if document.Size > limit {
			message = fmt.Sprintf("the file has %d bytes; the limit is %d", document.Size, limit)
		}
		d := newError("file-too-large", document.Path, message, sizeAdvice(document.Name))
		return &d
	}
	if document.Size > limit {
		return nil, tooLarge()
	}
	unreadable := func(err error) *guideway.Diagnostic {
		d := newError("file-unreadable", document.Path, "the file cannot be read: "+safeopen.Cause(err).Error(), "make the file readable, or move it elsewhere")
		if errors.Is(err, fs.ErrNotExist) {
			d.Message, d.Fix = "the file no longer exists", ""
		}
		return &d
	}
	file, err := document.Open(ctx)
	if err != nil {
		return nil, unreadable(err)
	}
	defer file.Close()
	// One byte more than the size detects a file that grew, without growing the buffer for
	// one that did not.
	data := make([]byte, 0, min(max(document.Size, 0), limit)+1)
	data, err = appendAll(data, io.LimitReader(file, limit+1))
	switch {
	case err != nil:
		return nil, unreadable(err)
	case int64(len(data)) > limit:
		return nil, tooLarge()
	case document.Sum != nil && sha256.Sum256(data) != *document.Sum:
		return nil, mismatchDiagnostic(document)
	}
	return data, nil
}

// sizeAdvice returns a way to make a document of its kind smaller.
func sizeAdvice(name string) string {
	if hookdef.PlaceOf(name).Kind != "" {
		return "split the file: scripts can be separate modules"
	}
	switch place := library.PlaceOf(name); {
	case place.IsText():
		return fmt.Sprintf("split the %s into several, each with its own index", place.Kind)
	case place.Kind != "":
		return "move long texts of the document to a guide"
	default:
		return "split the document"
	}
}

// appendAll reads all of r into the free space of data, which grows as needed.
func appendAll(data []byte, r io.Reader) ([]byte, error) {
	for {
		if len(data) == cap(data) {
			data = slices.Grow(data, 512)
		}
		n, err := r.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if err == io.EOF {
			return data, nil
		}
		if err != nil {
			return data, err
		}
	}
}

// parseDocument parses a document into its record, and reports whether the document loads.
// A panic of the parser only fails this document.
func (c *Catalog) parseDocument(r *record, document Document, data []byte) (loads bool) {
	defer func() {
		if failure := recover(); failure != nil {
			r.good, r.item, r.hook, loads = nil, nil, nil, false
			r.found = []guideway.Diagnostic{parserFailed(r.path, failure)}
		}
	}()
	if r.machineFile {
		r.data = data // A machine is parsed after all of its files were read.
		return true
	}
	if r.hookPlace.Kind != "" {
		r.hook, r.found = parseHook(r.hookPlace, r.path, data)
	} else if r.place.Kind != "" {
		r.item, r.found = library.Parse(r.place, r.path, data)
	} else if parsed, found := c.parseDefinition(r.path, data); parsed != nil {
		r.good, r.found, r.parsedHere = c.newParsed(parsed, document, data, found), found, true
	} else {
		r.found = found
	}
	loads = r.good != nil || r.item != nil || r.hook != nil
	if !loads && len(r.found) == 0 {
		r.found = []guideway.Diagnostic{newError("not-a-definition", r.path, "the document is not a definition", "write a definition of one of the dialects steps, phases, hooks and machines, or move the file elsewhere")}
	}
	return loads
}

// lintDefinition lints a definition. A panic of the linter only fails this definition.
func (c *Catalog) lintDefinition(parsed *workflow.Definition, data []byte, layout phases.Layout) (found []guideway.Diagnostic) {
	defer func() {
		if r := recover(); r != nil {
			found = []guideway.Diagnostic{newWarning("linter-failed", parsed.File,
				fmt.Sprintf("the linter failed on this definition, which is a bug: %v", r), "report the bug, with the document")}
		}
	}()
	if c.opts.Lint != nil {
		return c.opts.Lint(parsed, data)
	}
	return workflow.Lint(parsed, data, layout)
}
