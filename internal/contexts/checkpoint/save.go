package checkpoint

import (
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
	"github.com/guideway-dev/guideway/internal/platform/ctxsleep"
)

const (
	// keyframeEvery is how often a checkpoint stays whole: damage to one costs
	// the older ones up to the next whole one.
	keyframeEvery = 32
	// attempts is how often a save begins anew because another process was
	// faster. Each time one of them got on, so that all get through.
	attempts = 200

	maxName   = 200
	maxTags   = 40
	maxTag    = 64
	maxOther  = 256
	firstWait = 2 * time.Millisecond
	lastWait  = 50 * time.Millisecond
)

// draft is a save under way.
type draft struct {
	who     guideway.Principal
	request SaveRequest
	key     LineKey
	content *content
	words   string
	// warnings are about the content.
	warnings []Warning
}

// Save stores a context as a new checkpoint. What it answers is there for good,
// but where the store is ModeMemory.
//
// CodeInvalid: the context is no object, or a name is too long. CodeTooLarge: a
// hard limit. CodeNotFound: the expected head is not in the session.
// CodeForbidden: read-only. CodeUnavailable: there is no room, also after a
// cleanup; a key is missing; another process does not let go.
func (s *Service) Save(ctx context.Context, who guideway.Principal, r SaveRequest) (*Saved, error) {
	if err := s.writable("save a checkpoint"); err != nil {
		return nil, err
	}
	d, err := s.draft(who, r)
	if err != nil {
		return nil, err
	}
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	saved, err := s.insist(ctx, d)
	// Not while the line is locked: to heal takes up what it lacks.
	if errors.Is(err, errDamaged) && s.heal(ctx, d.key.User+" "+d.key.Session) {
		saved, err = s.insist(ctx, d)
	}
	if errors.Is(err, errDamaged) {
		return nil, misfit("save a checkpoint", err)
	}
	return saved, err
}

// insist tries to save a draft until no other process is in the way.
func (s *Service) insist(ctx context.Context, d *draft) (*Saved, error) {
	unlock := s.lines.lock(d.key)
	defer unlock()
	cleaned, gone, wait := false, 0, firstWait
	for range attempts {
		saved, err := s.attempt(ctx, d)
		switch {
		case err == nil:
			if s.reserveOut.Load() {
				s.holdReserve(ctx)
			}
			saved.Warnings = slices.Concat(s.memoryWarning(), saved.Warnings, d.warnings)
			if gone > 0 {
				saved.Warnings = append(saved.Warnings, Warning{Code: WarnCleaned, Message: "the disk was full: the sessions that were longest untouched are gone"})
			}
			return saved, nil
		case blob.IsFull(err) && !cleaned:
			cleaned = true
			var again bool
			if gone, again = s.emergency(ctx, d.key); !again {
				return nil, err
			}
			continue
		case guideway.ErrorCode(err) != guideway.CodeConflict:
			return nil, err
		}
		// Whoever waits differently long gets in each other's way less often.
		if ctxsleep.For(ctx, time.Duration(rand.Int64N(int64(wait))+1)) != nil { //nolint:gosec // it guards nothing
			return nil, guideway.Errorf(guideway.CodeUnavailable, "save a checkpoint: %w", ctx.Err())
		}
		wait = min(2*wait, lastWait)
	}
	return nil, guideway.Errorf(guideway.CodeUnavailable, "too many others save to the session %s at once", d.key.Session).WithFix("try again")
}

// draft checks a request and makes what does not depend on the line.
func (s *Service) draft(who guideway.Principal, r SaveRequest) (*draft, error) {
	if r.Kind == "" {
		r.Kind = KindManual
	}
	if err := r.check(); err != nil {
		return nil, err
	}
	if most := s.o.Limits.RawBytes; most > 0 && int64(len(r.Context)) > most {
		return nil, tooLarge("the context", int64(len(r.Context)), most)
	}
	c, err := canonical(r.Context)
	if err != nil {
		return nil, err
	}
	d := &draft{who: who, request: r, content: c}
	switch {
	case r.Session != "":
		d.key = LineKey{User: who.User, Session: SessionID(r.Session)}
	default:
		d.key = LineKey{User: who.User, Session: deriveSession(r.Workflow, c.sum)}
	}
	findings := s.secrets.Scan(c.tree)
	d.words = words(c.tree, findings)
	if s.o.Keys == nil {
		d.warnings = secretWarnings(findings)
	}
	return d, nil
}

func tooLarge(what string, size, most int64) error {
	return guideway.Errorf(guideway.CodeTooLarge, "%s has %d bytes, the limit is %d", what, size, most).
		WithFix("compress the context with workflow_context_compress, or leave out what can be read again")
}

// check refuses what would not fit into lists.
func (r SaveRequest) check() error {
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
		if len(field.value) > field.most || !utf8.ValidString(field.value) {
			return guideway.Errorf(guideway.CodeInvalid, "%s is longer than %d bytes, or not UTF-8", field.name, field.most).WithFix("shorten it")
		}
	}
	if len(r.Tags) > maxTags {
		return guideway.Errorf(guideway.CodeInvalid, "there are %d tags, more than %d", len(r.Tags), maxTags).WithFix("give fewer tags")
	}
	for _, tag := range r.Tags {
		if tag == "" || len(tag) > maxTag || !utf8.ValidString(tag) {
			return guideway.Errorf(guideway.CodeInvalid, "the tag %.70q is empty, longer than %d bytes, or not UTF-8", tag, maxTag).WithFix("shorten it")
		}
	}
	if r.Kind != KindManual && r.Kind != KindAuto {
		return guideway.Errorf(guideway.CodeInvalid, "%q is no kind of checkpoint", r.Kind).WithFix("use %q or %q", KindManual, KindAuto)
	}
	return nil
}

// place is where a new checkpoint goes.
type place struct {
	line Line
	// newest is the last checkpoint of the line, parent the one that it follows;
	// nil where there is none.
	newest, parent *Record
	branch         bool
}

// placeFor looks where a draft goes.
func (s *Service) placeFor(ctx context.Context, d *draft) (*place, error) {
	line, err := s.o.Index.Line(ctx, d.key)
	if err != nil {
		return nil, err
	}
	p := &place{line: line}
	newest, err := s.newest(ctx, line)
	if err != nil {
		return nil, err
	}
	p.newest, p.parent = newest, newest
	want := d.request.ExpectedHead
	if want == "" || (p.newest != nil && p.newest.ID == want) {
		return p, nil
	}
	parent, err := s.o.Index.Checkpoint(ctx, want)
	if err == nil && (parent.LineKey != d.key || parent.Kind == KindPiece) {
		err = guideway.Errorf(guideway.CodeNotFound, "not here")
	}
	if guideway.ErrorCode(err) == guideway.CodeNotFound {
		err := guideway.Errorf(guideway.CodeNotFound, "expectedHead %.80q is no checkpoint of the session %s", want, d.key.Session)
		if p.newest != nil {
			err = err.WithFix("load the last one, %s, or leave expectedHead out to save behind it", p.newest.ID)
		}
		return nil, err
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

// record makes the record of a draft at its place.
func (s *Service) record(d *draft, p *place) Record {
	r := d.request
	now := s.clock()
	rec := Record{
		LineKey: d.key, Run: r.Run, RunSeq: r.RunSeq, Branch: p.branch, Number: p.line.Last + 1,
		Workflow: r.Workflow, Project: r.Project, Agent: r.Agent, Name: r.Name, Tags: tidyTags(r.Tags), Kind: r.Kind,
		Created: now, Bytes: int64(len(d.content.raw)), Tokens: r.Tokens, Sum: d.content.sum,
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

// tidyTags sorts tags and has each once.
func tidyTags(tags []string) []string {
	list := slices.Clone(tags)
	slices.Sort(list)
	return slices.Compact(list)
}

// attempt saves a draft as the line is now. CodeConflict says that it has changed
// meanwhile.
func (s *Service) attempt(ctx context.Context, d *draft) (*Saved, error) {
	p, err := s.placeFor(ctx, d)
	if err != nil {
		return nil, err
	}
	rec := s.record(d, p)
	if d.request.Once {
		if there, err := s.saved(ctx, rec, p); there != nil || err != nil {
			return there, err
		}
	}
	key, err := s.keyFor(ctx, p.newest)
	if err != nil {
		return nil, err
	}
	if key != nil {
		rec.Key = key.Name
	}
	folding := s.startFold(ctx, rec, d.content.raw, p)
	defer folding.wait(nil)
	whole, err := s.pack(rec, d.content.raw, nil, key)
	if err != nil {
		return nil, err
	}
	// What cannot be read again is not stored.
	if err := s.readable(whole, nil, key, max(rec.Bytes, 1)); err != nil {
		return nil, guideway.Errorf(guideway.CodeInternal, "save a checkpoint: %w", err)
	}
	rec.Stored = int64(len(whole))
	if most := s.o.Limits.CheckpointBytes; most > 0 && rec.Stored > most {
		return nil, tooLarge("the checkpoint", rec.Stored, most)
	}
	rm, err := s.room(ctx, d.key, p.line, rec.Stored)
	if err != nil {
		return nil, err
	}
	change := Change{
		Line: d.key, Words: d.words, NoWords: key != nil, At: s.clock(), Touch: true, Remove: rm.ids(),
		Audit: []Entry{{At: rec.Created, Action: ActionSave, LineKey: d.key, Checkpoint: rec.ID, Client: d.who.Client}},
	}
	for _, gone := range rm.oldest {
		change.Audit = append(change.Audit, Entry{
			At: rec.Created, Action: ActionDelete, LineKey: d.key, Checkpoint: gone.ID, Client: d.who.Client, Detail: "the session's limit",
		})
	}
	fold, err := s.store(ctx, &rec, whole, change, d.request.Once, func() *folded { return folding.wait(change.Remove) })
	if err != nil {
		return nil, err
	}
	instead := ""
	if p.parent != nil && !p.branch {
		instead = p.parent.ID
	}
	s.recent.put(rec.ID, d.content.raw, instead)
	s.discard(ctx, rm.oldest, fold)
	saved := &Saved{Record: rec, Warnings: rm.warnings, Store: s.o.Store}
	if p.branch {
		saved.Head = p.newest.ID
		saved.Warnings = append(saved.Warnings, Warning{Code: WarnBranch, Message: fmt.Sprintf(
			"%s had a successor already, so that this checkpoint begins a branch; the session's last one was %s", rec.Parent, p.newest.ID)})
	}
	return saved, nil
}

// saved gives the one checkpoint of a run's event where it is there already, and
// refuses to save what was deleted, or what would stand behind its successor.
func (s *Service) saved(ctx context.Context, rec Record, p *place) (*Saved, error) {
	there, err := s.o.Index.Checkpoint(ctx, rec.ID)
	switch {
	case err == nil:
		return &Saved{Record: there, Store: s.o.Store}, nil
	case guideway.ErrorCode(err) != guideway.CodeNotFound:
		return nil, err
	case p.newest != nil && p.newest.Run == rec.Run && p.newest.RunSeq > rec.RunSeq:
		return nil, guideway.Errorf(guideway.CodeRefused, "the session %s has a checkpoint of a later event already, %s", rec.Session, p.newest.ID)
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

// keyFor gives the data key of a line's next checkpoint: that of its last one, or
// a new one where encryption is on; nil where there is none.
func (s *Service) keyFor(ctx context.Context, newest *Record) (*seal.Key, error) {
	if newest != nil && newest.Key != "" {
		key, err := s.keyOf(ctx, newest.Key)
		if !errors.Is(err, errDamaged) {
			return key, err
		}
		// The line's key is gone: what was saved with it cannot be read, but
		// what comes now can be.
	}
	if s.o.Keys == nil {
		return nil, nil
	}
	return s.o.Keys.New(ctx)
}

// folded is a checkpoint that is stored anew, as what differs from its successor.
type folded struct {
	swap Swap
	blob []byte
}

// folding is a fold under way.
type folding struct {
	group sync.WaitGroup
	made  *folded
}

// startFold makes the parent smaller while the new checkpoint is packed.
func (s *Service) startFold(ctx context.Context, next Record, raw []byte, p *place) *folding {
	f := &folding{}
	f.group.Go(func() { f.made = s.fold(ctx, next, raw, p) })
	return f
}

// wait gives what has come of it; nothing where that is removed now.
func (f *folding) wait(removed []string) *folded {
	f.group.Wait()
	if f.made != nil && slices.Contains(removed, f.made.swap.ID) {
		return nil
	}
	return f.made
}

// fold makes the parent of a new checkpoint smaller. That it cannot is no reason
// not to save: it then stays whole.
func (s *Service) fold(ctx context.Context, next Record, raw []byte, p *place) *folded {
	if p.parent == nil || p.branch {
		return nil
	}
	f, err := s.foldInto(ctx, *p.parent, next, raw)
	if err != nil {
		s.o.Logger.WarnContext(ctx, "a checkpoint could not be made smaller", "checkpoint", p.parent.ID, "error", err)
	}
	return f
}

// foldInto makes the delta of a checkpoint against its successor, whose content
// is given; nil where that is no gain, or the checkpoint is a keyframe.
func (s *Service) foldInto(ctx context.Context, old, next Record, nextRaw []byte) (*folded, error) {
	if old.Base != "" || old.Link%keyframeEvery == keyframeEvery-1 || old.Bytes+next.Bytes > maxDelta {
		return nil, nil
	}
	raw := s.recent.get(old.ID)
	if raw == nil {
		var err error
		if raw, err = s.content(ctx, old); err != nil {
			return nil, err
		}
	}
	form := Form{Base: next.ID, Key: next.Key}
	key, err := s.keyOf(ctx, form.Key)
	if err != nil {
		return nil, err
	}
	r := old
	r.Form = form
	data, err := s.pack(r, raw, nextRaw, key)
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > old.Stored*9/10 {
		return nil, nil
	}
	if err := s.readable(data, nextRaw, key, max(old.Bytes, 1)); err != nil {
		return nil, err
	}
	form.Blob, form.Stored = blob.NameOf(data), int64(len(data))
	return &folded{swap: Swap{ID: old.ID, Old: old.Blob, New: form}, blob: data}, nil
}

// store writes the blobs and then the index; rec gets its blob's name. fold gives the
// parent made smaller, which is written while the disk takes the first blob. once says that others may
// store the same at the same time.
func (s *Service) store(ctx context.Context, rec *Record, whole []byte, change Change, once bool, fold func() *folded) (*folded, error) {
	type outcome struct {
		name blob.Name
		err  error
	}
	put := make(chan outcome, 1)
	go func() {
		name, err := s.o.Blobs.Put(ctx, whole)
		put <- outcome{name, err}
	}()
	f := fold()
	if f != nil {
		if _, err := s.o.Blobs.Put(ctx, f.blob); err != nil {
			s.o.Logger.WarnContext(ctx, "a checkpoint could not be made smaller", "checkpoint", f.swap.ID, "error", err)
			f = nil
		}
	}
	first := <-put
	rec.Blob = first.name
	err := first.err
	if err == nil {
		if f != nil {
			change.Swaps = append(change.Swaps, f.swap)
		}
		change.Add = rec
		err = s.o.Index.Apply(ctx, change)
	}
	if err == nil {
		return f, nil
	}
	mine := f
	if once {
		mine = nil // another process may be saving the same, and need it
	}
	return f, s.settle(ctx, err, rec, mine)
}

// settle looks what has come of a save that got an error, and takes back what is
// left of one that did not happen.
func (s *Service) settle(ctx context.Context, cause error, rec *Record, fold *folded) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	there, err := s.o.Index.Checkpoint(ctx, rec.ID)
	switch {
	case err == nil && there.Blob == rec.Blob:
		return nil // it was the answer that got lost
	case guideway.ErrorCode(err) != guideway.CodeNotFound:
		return cause // nobody knows; a later look at the blobs will
	}
	if rec.Blob != "" {
		s.unlink(ctx, rec.Blob)
	}
	// The delta has a name that only this save could have given it, where its base
	// has an id of its own.
	if fold != nil {
		s.unlink(ctx, fold.swap.New.Blob)
	}
	return cause
}

// discard removes the blobs that a save has left without use.
func (s *Service) discard(ctx context.Context, gone []Record, fold *folded) {
	var names []blob.Name
	for _, r := range gone {
		names = append(names, r.Blob)
	}
	if fold != nil {
		names = append(names, fold.swap.Old)
	}
	s.unlink(ctx, names...)
}

// unlink removes blobs; what is left of them is swept later.
func (s *Service) unlink(ctx context.Context, names ...blob.Name) {
	if len(names) == 0 {
		return
	}
	if err := s.o.Blobs.Delete(context.WithoutCancel(ctx), names...); err != nil {
		s.o.Logger.WarnContext(ctx, "blobs that nobody needs could not be removed yet", "blobs", len(names), "error", err)
	}
}
