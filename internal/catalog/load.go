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

// state is what is known of one source. It is replaced, never changed.
type state struct {
	info        SourceInfo
	records     []*record // in order of their names
	diagnostics []guideway.Diagnostic
	loaded      time.Time
	missing     bool
	blocked     bool
	failure     string
	// machines are what the files below machines give, machineSum what they were
	// made of.
	machines   []*machined
	machineSum [sha256.Size]byte
}

// size is what the documents of the source take of the total.
func (s *state) size() (total int64) {
	for _, r := range s.records {
		total += r.size
	}
	return total
}

// record is what is known of one document. It is replaced, never changed.
type record struct {
	name, path string
	// revision is what of the source it was read from.
	revision string
	// place is where it lies in the layout of a library; a workflow has none.
	place library.Place
	// hookPlace is the same for the hooks dialect.
	hookPlace hookdef.Place
	// machineFile says that it is a file of an agent machine, whose text is data.
	machineFile bool
	data        []byte
	size        int64
	stamp       string
	sum         [sha256.Size]byte
	// content gives the text, which was not kept, or nothing if it is gone.
	content func() []byte
	// good is the last version that loaded; nil if none did.
	good *loaded
	// item is the same of a document of the library.
	item *library.Item
	// hook is the same of a document of the hooks dialect.
	hook *hooked
	// learnt says that good was read, and not known from an index.
	learnt bool
	// broken says that the present version does not load, and found why.
	broken bool
	found  []guideway.Diagnostic
	// claims is the id that a broken version probably has.
	claims string
}

// all stands for the number of every source.
const all = -1

// reload reads one source, or all, and publishes the outcome.
func (c *Catalog) reload(ctx context.Context, which int) error {
	c.loading.Lock()
	defer c.loading.Unlock()
	if c.reconsider() {
		which = all
	}
	listings := make([]listing, len(c.sources))
	var listers sync.WaitGroup
	for i, source := range c.sources {
		switch {
		case which != all && which != i:
		case c.states[i].info.Level == LevelBlocked:
			listings[i] = listing{done: true, blocked: true}
		default:
			listers.Go(func() {
				listings[i] = list(ctx, source)
				if c.states[i].loaded.IsZero() {
					listings[i].index = c.recall(c.states[i].info)
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
			jobs = append(jobs, c.admit(ctx, &next[i], listings[i], &budget)...)
			continue
		}
		budget -= next[i].size()
	}
	c.perform(jobs)
	if err := ctx.Err(); err != nil {
		return err
	}
	for i := range next {
		if listings[i].done {
			c.assemble(&next[i], &c.states[i])
		}
	}
	c.states = next
	c.publish(merge(next))
	for i := range next {
		if listings[i].done {
			c.remember(&next[i])
		}
	}
	return nil
}

// listing is the answer of a source.
type listing struct {
	done        bool
	blocked     bool
	documents   []Document
	diagnostics []guideway.Diagnostic
	index       index // at the first look at the source
	err         error
}

func list(ctx context.Context, source Source) (l listing) {
	l.done = true
	defer func() {
		if r := recover(); r != nil {
			l.err = fmt.Errorf("the source failed: %v", r)
		}
	}()
	l.documents, l.diagnostics, l.err = source.Documents(ctx)
	return l
}

// admit makes the next state of a source from its answer, and gives the jobs
// that complete it.
func (c *Catalog) admit(ctx context.Context, s *state, l listing, budget *int64) []func() {
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
			s.diagnostics = append(s.diagnostics, problem("source-missing", s.info.Location,
				fmt.Sprintf("the source %q does not exist", s.info.Name), "create it, or remove it from the configuration"))
		}
		return nil
	case l.err != nil:
		s.failure = safeopen.Cause(l.err).Error()
		message := fmt.Sprintf("the source %q cannot be read: %s", s.info.Name, s.failure)
		if len(s.records) > 0 {
			message += "; what it gave before goes on serving"
		}
		s.diagnostics = append(s.diagnostics, problem("source-unreadable", s.info.Location, message, cmp.Or(guideway.ErrorFix(l.err), "make it readable")))
		*budget -= s.size()
		return nil
	}
	documents := l.documents
	slices.SortStableFunc(documents, func(a, b Document) int { return strings.Compare(a.Name, b.Name) })
	if limit := c.opts.Limits.Files; len(documents) > limit {
		s.diagnostics = append(s.diagnostics, problem("limit-files", s.info.Location,
			fmt.Sprintf("the source %q has %d documents; only the first %d by name are read", s.info.Name, len(documents), limit),
			"give the workflows a directory of their own"))
		documents = documents[:limit]
	}
	l.documents = documents
	return c.records(ctx, s, l, previous, budget)
}

// records fills in the records of a state: known ones as they are, the others
// by jobs.
func (c *Catalog) records(ctx context.Context, s *state, l listing, previous map[string]*record, budget *int64) []func() {
	var jobs []func()
	left := 0
	s.records = make([]*record, 0, len(l.documents))
	for _, document := range l.documents {
		// A document over its own limit is not read, and takes little.
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
			content: c.reader(document),
		}
		if fresh.machineFile, _ = isMachineFile(document.Name); fresh.machineFile {
			fresh.hookPlace = hookdef.Place{}
		} else if fresh.hookPlace.Kind == "" {
			fresh.place = library.PlaceOf(document.Name)
		}
		s.records = append(s.records, fresh)
		if c.recognise(fresh, document, l.index) {
			continue
		}
		jobs = append(jobs, func() { c.read(ctx, fresh, document, known, l.index) })
	}
	if left > 0 {
		s.diagnostics = append(s.diagnostics, problem("limit-bytes", s.info.Location,
			fmt.Sprintf("all documents together are larger than %d bytes; %d of the source %q are not read",
				c.opts.Limits.TotalBytes, left, s.info.Name),
			"remove documents"))
	}
	return jobs
}

// recognise fills in the record of a document whose hash the source knows, and which
// the index has, so that it need not be opened. It says whether it did.
func (c *Catalog) recognise(r *record, document Document, known index) bool {
	if document.Sum == nil || document.Problem != nil || document.Size > c.opts.Limits.FileBytes {
		return false
	}
	head, ok := r.known(known, *document.Sum)
	if ok {
		r.sum, r.good = *document.Sum, c.remembered(head, document, nil)
	}
	return ok
}

// perform does jobs with a bounded number of workers.
func (c *Catalog) perform(jobs []func()) {
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

// read reads a document into its record. Before is the record of its version
// before, or nil.
func (c *Catalog) read(ctx context.Context, r *record, document Document, before *record, known index) {
	data, finding := c.content(ctx, document)
	if finding == nil {
		r.sum = sha256.Sum256(data)
		if head, ok := r.known(known, r.sum); ok {
			r.good = c.remembered(head, document, data)
			return
		}
		if before != nil && before.sum == r.sum {
			r.good, r.item, r.hook, r.broken, r.found, r.claims = before.good, before.item, before.hook, before.broken, before.found, before.claims
			r.data = before.data
			return
		}
		if c.parse(r, document, data) {
			return
		}
	} else {
		// What kept it from being read can end without the file changing.
		r.found, r.stamp = []guideway.Diagnostic{*finding}, ""
	}
	r.broken = true
	if r.machineFile {
		return
	}
	r.claims = r.claimed(data)
	if data == nil {
		r.claims = cmp.Or(formerID(before), r.indexed(known, document.Sum), r.claims)
	}
	if before != nil {
		r.good, r.item, r.hook = before.good.lasting(), before.item, before.hook
	}
	if id := r.id(); id != "" {
		r.found = append(slices.Clip(r.found), notice("file-stale", r.path,
			fmt.Sprintf("the last version of %q that loaded goes on serving until this program ends", id),
			"mend the file, or delete it to end the serving"))
	}
}

// id is the id of what the record serves, or "".
func (r *record) id() string {
	switch {
	case r.good != nil:
		return r.good.head.ID
	case r.item != nil:
		return r.item.ID
	case r.hook != nil:
		return r.hook.id()
	default:
		return ""
	}
}

// formerID is the id that a version before had, or claimed; "" where there was none.
func formerID(before *record) string {
	if before == nil {
		return ""
	}
	return cmp.Or(before.id(), before.claims)
}

// indexed is the id that an index has for what a document should be; "" where it has
// none, or the document may be anything.
func (r *record) indexed(known index, sum *[sha256.Size]byte) string {
	if sum == nil {
		return ""
	}
	head, _ := r.known(known, *sum)
	return head.ID
}

// claimed is the id that a version that does not load probably has.
func (r *record) claimed(data []byte) string {
	if r.place.IsText() {
		return r.place.ID()
	}
	id := claimedID(data, r.name)
	if r.place.Kind != "" && id == stemOf(r.name) {
		return r.place.Name // the file's name, without the index
	}
	return id
}

// content reads a document within its bound.
func (c *Catalog) content(ctx context.Context, document Document) ([]byte, *guideway.Diagnostic) {
	if document.Problem != nil {
		return nil, document.Problem
	}
	limit := c.opts.Limits.FileBytes
	tooLarge := func() *guideway.Diagnostic {
		message := fmt.Sprintf("the file is larger than %d bytes", limit)
		if document.Size > limit {
			message = fmt.Sprintf("the file has %d bytes; the limit is %d", document.Size, limit)
		}
		d := problem("file-too-large", document.Path, message, shorten(document.Name))
		return &d
	}
	if document.Size > limit {
		return nil, tooLarge()
	}
	unreadable := func(err error) *guideway.Diagnostic {
		d := problem("file-unreadable", document.Path, "the file cannot be read: "+safeopen.Cause(err).Error(), "make it readable, or move it away")
		if errors.Is(err, fs.ErrNotExist) {
			d.Message, d.Fix = "the file vanished while it was read", ""
		}
		return &d
	}
	file, err := document.Open(ctx)
	if err != nil {
		return nil, unreadable(err)
	}
	defer file.Close()
	// One byte more than the size shows a file that grew, without growing the
	// buffer for one that did not.
	data := make([]byte, 0, min(max(document.Size, 0), limit)+1)
	data, err = appendAll(data, io.LimitReader(file, limit+1))
	switch {
	case err != nil:
		return nil, unreadable(err)
	case int64(len(data)) > limit:
		return nil, tooLarge()
	case document.Sum != nil && sha256.Sum256(data) != *document.Sum:
		return nil, mismatch(document)
	}
	return data, nil
}

// shorten says how a document that is too large gets smaller, by what it is.
func shorten(name string) string {
	if hookdef.PlaceOf(name).Kind != "" {
		return "split it: scripts can be modules of their own"
	}
	switch place := library.PlaceOf(name); {
	case place.IsText():
		return fmt.Sprintf("split the %s into several, each with its own index", place.Kind)
	case place.Kind != "":
		return "move long texts of it to a guide"
	default:
		return "split the workflow"
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

// parse reads a document into its record and says whether it loads. It keeps a
// defect of the parser that one document meets from taking the others along.
func (c *Catalog) parse(r *record, document Document, data []byte) (loads bool) {
	defer func() {
		if failure := recover(); failure != nil {
			r.good, r.item, r.hook, loads = nil, nil, nil, false
			r.found = []guideway.Diagnostic{parserFailed(r.path, failure)}
		}
	}()
	if r.machineFile {
		r.data = data // a machine is read when all of its files are there
		return true
	}
	if r.hookPlace.Kind != "" {
		r.hook, r.found = parseHook(r.hookPlace, r.path, data)
	} else if r.place.Kind != "" {
		r.item, r.found = library.Parse(r.place, r.path, data)
	} else if parsed, found := c.parseDefinition(r.path, data); parsed != nil {
		r.good, r.found, r.learnt = c.parsed(parsed, document, data, found), found, true
	} else {
		r.found = found
	}
	loads = r.good != nil || r.item != nil || r.hook != nil
	if !loads && len(r.found) == 0 {
		r.found = []guideway.Diagnostic{problem("not-a-definition", r.path, "the document is no definition", "")}
	}
	return loads
}

// lint keeps a defect of the linter to the one definition, as parse does.
func (c *Catalog) lint(parsed *workflow.Definition, data []byte, layout phases.Layout) (found []guideway.Diagnostic) {
	defer func() {
		if r := recover(); r != nil {
			found = []guideway.Diagnostic{notice("linter-failed", parsed.File,
				fmt.Sprintf("the linter failed on this definition, which is a defect of the program: %v", r), "report it, with the document")}
		}
	}()
	if c.opts.Lint != nil {
		return c.opts.Lint(parsed, data)
	}
	return workflow.Lint(parsed, data, layout)
}
