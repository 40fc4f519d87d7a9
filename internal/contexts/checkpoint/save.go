package checkpoint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/blob"
	"github.com/guideway-dev/guideway/internal/contexts/blob/seal"
	"github.com/guideway-dev/guideway/internal/contexts/compress"
	"github.com/guideway-dev/guideway/internal/platform/ctxsleep"
)

const (
	// keyframeEvery is the distance between whole checkpoints. A damaged checkpoint affects
	// only the older checkpoints up to the next whole one.
	keyframeEvery = 32
	// attempts bounds the retries of a save after a conflict. Each conflict means that
	// another change succeeded, so concurrent changes always make progress.
	attempts = 200

	maxName   = 200
	maxTags   = 40
	maxTag    = 64
	maxOther  = 256
	firstWait = 2 * time.Millisecond
	lastWait  = 50 * time.Millisecond
)

// saveDraft is a save in progress.
type saveDraft struct {
	who     guideway.Principal
	request SaveRequest
	key     SeriesKey
	content *content
	// payload returns the compressed content, scan the search terms and the likely secrets,
	// which are computed while the content is compressed and written.
	payload  func() ([]byte, error)
	scan     func() scanResult
	warnings []Warning
}

// scanResult are the search terms of a content and the warnings about likely secrets.
type scanResult struct {
	terms    []string
	warnings []Warning
}

// Save stores a context as a new checkpoint. A returned checkpoint is durable, unless the
// store is ModeMemory.
//
// Errors have CodeInvalid if the request is invalid, CodeTooLarge if a limit of size is
// exceeded, CodeNotFound if the expected head is not in the session, CodeRefused if
// SaveRequest.Once forbids the save, and CodeForbidden in read-only mode. They have
// CodeUnavailable if there is no room even after a cleanup, a key is missing, or another
// process holds a lock.
func (s *Service) Save(ctx context.Context, who guideway.Principal, r SaveRequest) (*Saved, error) {
	if err := s.requireWritable("save a checkpoint"); err != nil {
		return nil, err
	}
	d, err := s.newDraft(who, r)
	if err != nil {
		return nil, err
	}
	if err := s.ensureIndex(ctx); err != nil {
		return nil, err
	}
	saved, err := s.saveRetrying(ctx, d)
	// repairIndex must run without the lock of the series, since it adds checkpoints.
	if errors.Is(err, errDamaged) && s.repairIndex(ctx, d.key.User+" "+d.key.Session) {
		saved, err = s.saveRetrying(ctx, d)
	}
	if errors.Is(err, errDamaged) {
		return nil, newMismatch("save a checkpoint", err)
	}
	return saved, err
}

// saveRetrying tries to save a draft until there is no conflict.
func (s *Service) saveRetrying(ctx context.Context, d *saveDraft) (*Saved, error) {
	unlock := s.locks.lockSeries(d.key)
	defer unlock()
	cleaned, gone, wait := false, 0, firstWait
	for range attempts {
		saved, err := s.trySave(ctx, d)
		switch {
		case err == nil:
			if s.reserveOut.Load() {
				s.holdReserve(ctx)
			}
			saved.Warnings = slices.Concat(s.memoryWarning(), saved.Warnings, d.scan().warnings, d.warnings)
			if gone > 0 {
				saved.Warnings = append(saved.Warnings, Warning{Code: WarnCleaned, Message: fmt.Sprintf(
					"the disk was full: the checkpoints of the least recently used sessions were deleted (sessions: %d; guideway checkpoint log lists them)", gone)})
			}
			return saved, nil
		case blob.IsFull(err) && !cleaned:
			cleaned = true
			var again bool
			if gone, again = s.freeFullDisk(ctx, d.key); !again {
				return nil, err
			}
			continue
		case guideway.ErrorCode(err) != guideway.CodeConflict:
			return nil, err
		}
		// A random delay reduces conflicts.
		if ctxsleep.For(ctx, time.Duration(rand.Int64N(int64(wait))+1)) != nil { //nolint:gosec // it guards nothing
			return nil, guideway.Errorf(guideway.CodeUnavailable, "save a checkpoint: %w", ctx.Err())
		}
		wait = min(2*wait, lastWait)
	}
	return nil, guideway.Errorf(guideway.CodeUnavailable, "too many concurrent saves to the session %s", d.key.Session).WithFix("try again")
}

// newDraft validates a request and prepares everything that does not depend on the series.
func (s *Service) newDraft(who guideway.Principal, r SaveRequest) (*saveDraft, error) {
	if r.Kind == "" {
		r.Kind = KindManual
	}
	if err := r.checkLimits(); err != nil {
		return nil, err
	}
	if most := s.o.Limits.RawBytes; most > 0 && int64(len(r.Context)) > most {
		return nil, tooLarge("the context", int64(len(r.Context)), most)
	}
	c, err := &content{raw: r.Context, tree: r.Tree}, error(nil)
	if r.Tree != nil {
		c.sum = sumOf(c.raw)
	} else if c, err = parseCanonical(r.Context); err != nil {
		return nil, err
	}
	d := &saveDraft{who: who, request: r, content: c}
	switch {
	case r.Session != "":
		d.key = SeriesKey{User: who.User, Session: SessionID(r.Session)}
	default:
		sum := c.sum
		if s.o.Keys != nil {
			sum = nil // the id can be read
		}
		d.key = SeriesKey{User: who.User, Session: deriveSession(r.Workflow, sum)}
	}
	d.scan = sync.OnceValue(func() (out scanResult) {
		findings := s.secrets.Scan(c.tree)
		out.terms = contentTerms(c.tree, findings)
		if s.o.Keys == nil {
			out.warnings = SecretWarnings(findings)
		}
		return out
	})
	d.payload = sync.OnceValues(func() ([]byte, error) { return s.squeezer.encodeContent(c.raw, nil) })
	go d.scan()
	if r.Session != "" && r.Session != d.key.Session {
		d.warnings = append(d.warnings, Warning{Code: WarnRenamed, Message: fmt.Sprintf("the session %.100q is stored as %s; both names load it", r.Session, d.key.Session)})
	}
	return d, nil
}

func tooLarge(what string, size, most int64) error {
	return guideway.Errorf(guideway.CodeTooLarge, "%s has %d bytes, above the limit of %d bytes", what, size, most).
		WithFix("compress the context with workflow_context_compress, or omit values that can be read again")
}

// checkLimits returns an error if a field other than the context is too long or otherwise
// invalid.
func (r SaveRequest) checkLimits() error {
	for _, field := range []struct {
		name, value string
		most        int
	}{
		{"name", r.Name, maxName},
		{"workflowId", r.Workflow, maxOther},
		{"projectId", r.Project, maxOther},
		{"agentId", r.Agent, maxOther},
		{"sessionId", r.Session, 4 * maxOther},
		{"expectedHead", r.ExpectedHead, maxOther},
	} {
		if len(field.value) > field.most {
			return guideway.Errorf(guideway.CodeInvalid, "%s has %d bytes, more than the maximum of %d", field.name, len(field.value), field.most).
				WithFix("shorten %s", field.name)
		}
		if !utf8.ValidString(field.value) {
			return guideway.Errorf(guideway.CodeInvalid, "%s is not UTF-8", field.name).WithFix("encode %s as UTF-8", field.name)
		}
	}
	if len(r.Tags) > maxTags {
		return guideway.Errorf(guideway.CodeInvalid, "there are %d tags, more than the maximum of %d", len(r.Tags), maxTags).WithFix("pass fewer tags")
	}
	for _, tag := range r.Tags {
		switch {
		case tag == "":
			return guideway.Errorf(guideway.CodeInvalid, "a tag is empty").WithFix("remove the empty tag")
		case len(tag) > maxTag:
			return guideway.Errorf(guideway.CodeInvalid, "the tag %.70q has %d bytes, more than the maximum of %d", tag, len(tag), maxTag).
				WithFix("shorten the tag")
		case !utf8.ValidString(tag):
			return guideway.Errorf(guideway.CodeInvalid, "the tag %.70q is not UTF-8", tag).WithFix("encode the tag as UTF-8")
		}
	}
	if r.Kind != KindManual && r.Kind != KindAuto {
		return guideway.Errorf(guideway.CodeInvalid, "%q is not a checkpoint kind", r.Kind).WithFix("use %q or %q", KindManual, KindAuto)
	}
	return nil
}

// savePosition is the position of a new checkpoint.
type savePosition struct {
	series Series
	// newest is the last checkpoint of the series, parent the predecessor of the new one;
	// both may be nil.
	newest, parent *Record
	branch         bool
}

// findPosition returns the position of a draft.
func (s *Service) findPosition(ctx context.Context, d *saveDraft) (*savePosition, error) {
	series, err := s.o.Index.Series(ctx, d.key)
	if err != nil {
		return nil, err
	}
	p := &savePosition{series: series}
	newest, err := s.newestRecord(ctx, series)
	if err != nil {
		return nil, err
	}
	p.newest, p.parent = newest, newest
	want := d.request.ExpectedHead
	if want == "" || (p.newest != nil && p.newest.ID == want) {
		return p, nil
	}
	parent, err := s.o.Index.Checkpoint(ctx, want)
	if err == nil && (parent.SeriesKey != d.key || parent.Kind == KindFragment) {
		err = guideway.Errorf(guideway.CodeNotFound, "the checkpoint %s belongs to a different session", want)
	}
	if guideway.ErrorCode(err) == guideway.CodeNotFound {
		err := guideway.Errorf(guideway.CodeNotFound, "expectedHead %.80q is not a checkpoint of the session %s", want, d.key.Session)
		if p.newest == nil {
			return nil, err.WithFix("omit expectedHead: the session has no checkpoints")
		}
		return nil, err.WithFix("load the last checkpoint, %s, or omit expectedHead to save after it", p.newest.ID)
	}
	if err != nil {
		return nil, err
	}
	next, err := s.o.Index.Checkpoints(ctx, Filter{User: d.key.User, Session: d.key.Session, Parent: want, Limit: 1})
	if err != nil {
		return nil, err
	}
	p.parent, p.branch = &parent, len(next) > 0
	return p, nil
}

// newRecord returns the record of a draft at a position.
func (s *Service) newRecord(d *saveDraft, p *savePosition) Record {
	r := d.request
	now := s.currentTime()
	rec := Record{
		SeriesKey: d.key, Run: r.Run, RunSeq: r.RunSeq, Branch: p.branch, Number: p.series.Last + 1,
		Workflow: r.Workflow, Project: r.Project, Agent: r.Agent, Name: r.Name, Tags: tidyTags(r.Tags), Kind: r.Kind,
		Created: now, Bytes: int64(len(d.content.raw)), Sum: d.content.sum,
		Tokens: cmp.Or(r.Tokens, int64(compress.Estimate(string(d.content.raw)))), // a count takes longer than the save
	}
	rec.ID = newID(now)
	switch {
	case r.id != "":
		rec.ID = r.id
	case r.Once:
		rec.ID = onceID(d.key, r.Run, r.RunSeq)
	}
	if !r.created.IsZero() && r.created.Before(now) {
		rec.Created = r.created
	}
	if p.newest != nil && !rec.Created.After(p.newest.Created) {
		rec.Created = p.newest.Created.Add(time.Microsecond) // the clock went backwards
	}
	if p.parent != nil {
		rec.Parent, rec.Link = p.parent.ID, p.parent.Link+1
	}
	return rec
}

// tidyTags sorts tags and removes duplicates.
func tidyTags(tags []string) []string {
	list := slices.Clone(tags)
	slices.Sort(list)
	return slices.Compact(list)
}

// trySave tries to save a draft. It returns CodeConflict if the series has changed.
func (s *Service) trySave(ctx context.Context, d *saveDraft) (*Saved, error) {
	p, err := s.findPosition(ctx, d)
	if err != nil {
		return nil, err
	}
	rec := s.newRecord(d, p)
	if d.request.Once {
		if there, err := s.existingOnce(ctx, rec, p); there != nil || err != nil {
			return there, err
		}
	}
	key, err := s.keyFor(ctx, p.newest)
	if err != nil {
		return nil, err
	}
	if key != nil {
		rec.Key, rec.Sum = key.Name, []byte{}
	}
	payload, err := d.payload()
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeInternal, "compress the checkpoint: %w", err)
	}
	whole, err := frameBlob(rec, d.content.sum, payload, key)
	if err != nil {
		return nil, err
	}
	rec.Stored = int64(len(whole))
	if most := s.o.Limits.CheckpointBytes; most > 0 && rec.Stored > most {
		return nil, tooLarge("the checkpoint", rec.Stored, most)
	}
	rm, err := s.makeRoom(ctx, d.key, p.series, rec.Stored)
	if err != nil {
		return nil, err
	}
	// A blob that cannot be read back is not added to the index.
	readable := make(chan error, 1)
	go func() {
		d.scan() // not at the same time, because the write of the blob needs a processor, too
		readable <- s.verifyPacked(whole, nil, key, max(rec.Bytes, 1))
	}()
	change := Change{
		Series: d.key, At: s.currentTime(), Touch: true,
		Audit: []Entry{{At: rec.Created, Action: ActionSave, SeriesKey: d.key, Checkpoint: rec.ID, Client: d.who.Client}},
	}
	for _, gone := range rm.oldest {
		change.Remove = append(change.Remove, Removal{gone.ID, gone.Blob})
		change.Audit = append(change.Audit, Entry{
			At: rec.Created, Action: ActionDelete, SeriesKey: d.key, Checkpoint: gone.ID, Client: d.who.Client, Detail: "the session's limit",
		})
	}
	if err := s.storeBlob(ctx, &rec, whole, func() (c Change, err error) {
		change.Terms, err = s.searchTerms(ctx, rec, d.scan().terms)
		return change, errors.Join(err, <-readable)
	}); err != nil {
		return nil, err
	}
	s.recent.putContent(rec.ID, d.content.raw)
	s.discardBlobs(ctx, rm.oldest)
	if p.parent != nil && !p.branch && !slices.ContainsFunc(rm.oldest, func(r Record) bool { return r.ID == p.parent.ID }) {
		s.pushFold(fold{*p.parent, rec})
	}
	saved := &Saved{Record: rec, Warnings: rm.warnings, Store: s.o.Store}
	if p.branch {
		saved.Head = p.newest.ID
		saved.Warnings = append(saved.Warnings, Warning{Code: WarnBranch, Message: fmt.Sprintf(
			"the checkpoint %s already had a successor, so this checkpoint starts a branch; the last checkpoint of the session was %s", rec.Parent, p.newest.ID)})
	}
	return saved, nil
}

// existingOnce returns the checkpoint of rec's event if it exists. It returns an error if
// that checkpoint was deleted, or if a checkpoint of a later event exists, and nil
// otherwise.
func (s *Service) existingOnce(ctx context.Context, rec Record, p *savePosition) (*Saved, error) {
	there, err := s.o.Index.Checkpoint(ctx, rec.ID)
	switch {
	case err == nil:
		return &Saved{Record: there, Store: s.o.Store}, nil
	case guideway.ErrorCode(err) != guideway.CodeNotFound:
		return nil, err
	case p.newest != nil && p.newest.Run == rec.Run && p.newest.RunSeq > rec.RunSeq:
		return nil, guideway.Errorf(guideway.CodeRefused, "the session %s already has a checkpoint of a later event, %s", rec.Session, p.newest.ID)
	}
	gone, err := s.o.Index.Deleted(ctx, []string{rec.ID})
	if err != nil {
		return nil, err
	}
	if gone[rec.ID] {
		return nil, guideway.Errorf(guideway.CodeRefused, "the checkpoint of event %d of %s was deleted", rec.RunSeq, rec.Run)
	}
	return nil, nil
}

// keyFor returns the data key of the next checkpoint of a series: the key of the last
// checkpoint, or a new key if encryption is on, otherwise nil.
func (s *Service) keyFor(ctx context.Context, newest *Record) (*seal.Key, error) {
	if newest != nil && newest.Key != "" {
		key, err := s.keyOf(ctx, newest.Key)
		if !errors.Is(err, errDamaged) {
			return key, err
		}
		// The key of the series is lost: its checkpoints cannot be read, but new ones can
		// be saved with a new key.
	}
	if s.o.Keys == nil {
		return nil, nil
	}
	return s.o.Keys.New(ctx)
}

// storeBlob writes the blob of a new record and then the index, and sets rec.Blob. change
// returns the rest of the change, or an error if the record must not be added.
func (s *Service) storeBlob(ctx context.Context, rec *Record, data []byte, change func() (Change, error)) error {
	var err error
	if rec.Blob, err = s.o.Blobs.Put(ctx, data); err == nil {
		var c Change
		if c, err = change(); err == nil {
			c.Add = rec
			err = s.o.Index.Apply(ctx, c)
		} else {
			err = fmt.Errorf("save a checkpoint: %w", err)
		}
	}
	if err == nil {
		return nil
	}
	return s.resolveOutcome(ctx, err, rec)
}

// resolveOutcome returns nil if a save whose change returned an error was stored
// nevertheless, otherwise cause. It removes the blob of a save that failed.
func (s *Service) resolveOutcome(ctx context.Context, cause error, rec *Record) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	there, err := s.o.Index.Checkpoint(ctx, rec.ID)
	switch {
	case err == nil && there.Blob == rec.Blob:
		return nil // the change was stored; only the response was lost
	case guideway.ErrorCode(err) != guideway.CodeNotFound:
		return cause // the outcome is unknown; a later survey of the blobs decides
	}
	if rec.Blob != "" {
		s.unlinkBlobs(ctx, rec.Blob)
	}
	return cause
}

// discardBlobs removes the blobs of removed records.
func (s *Service) discardBlobs(ctx context.Context, gone []Record) {
	var names []blob.Name
	for _, r := range gone {
		names = append(names, r.Blob)
	}
	s.unlinkBlobs(ctx, names...)
}

// unlinkBlobs removes blobs. If that fails, a later sweep removes the remaining ones.
func (s *Service) unlinkBlobs(ctx context.Context, names ...blob.Name) {
	if len(names) == 0 {
		return
	}
	if err := s.o.Blobs.Delete(context.WithoutCancel(ctx), names...); err != nil {
		s.o.Logger.WarnContext(ctx, "unused blobs could not be removed yet", "blobs", len(names), "error", err)
	}
}
