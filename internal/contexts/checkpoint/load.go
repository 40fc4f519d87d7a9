package checkpoint

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/blob"
	"github.com/guideway-dev/guideway/internal/platform/jsontext"
)

// maxChain bounds how many checkpoints are read for one: more than there can be
// between two whole ones.
const maxChain = 4 * keyframeEvery

// Load gives a context as it was saved. Where the checkpoint that was meant is
// damaged it gives the newest older one of the session that is not, and says so.
//
// CodeNotFound: there is none, or it is another user's. CodeUnavailable: it cannot
// be read now, because a key is missing or the disk fails. CodeInternal: it is
// damaged, and so is all before it.
func (s *Service) Load(ctx context.Context, who guideway.Principal, r LoadRequest) (*Loaded, error) {
	if err := s.unlocked("load a checkpoint"); err != nil {
		return nil, err
	}
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	out := &Loaded{}
	rec, raw, err := s.find(ctx, who, r)
	if errors.Is(err, errDamaged) && s.heal(ctx, r.ID+" "+who.User+" "+SessionID(r.Session)) {
		rec, raw, err = s.find(ctx, who, r)
	}
	switch {
	case errors.Is(err, errDamaged) && rec.ID == "": // not even which one is meant is known
		err = misfit("load a checkpoint", err)
	case errors.Is(err, errDamaged):
		rec, raw, out.Degraded, err = s.older(ctx, rec, err)
	}
	if err != nil {
		return nil, err
	}
	out.Record, out.Context, out.Store, out.Warnings = rec, raw, s.o.Store, s.memoryWarning()
	if len(r.Keys) > 0 {
		if out.Context, out.Missing, err = choose(raw, r.Keys); err != nil {
			return nil, err
		}
	}
	if out.Heads, err = s.otherHeads(ctx, rec); err != nil {
		return nil, err
	}
	s.ledger.note(Entry{At: s.clock(), Action: ActionLoad, LineKey: rec.LineKey, Checkpoint: rec.ID, Client: who.Client}, true)
	s.o.Logger.DebugContext(ctx, "a checkpoint was loaded", "checkpoint", rec.ID, "session", rec.Session)
	return out, nil
}

// find finds and reads the checkpoint that a request means.
func (s *Service) find(ctx context.Context, who guideway.Principal, r LoadRequest) (Record, []byte, error) {
	rec, err := s.wanted(ctx, who, r)
	if err != nil {
		return Record{}, nil, err
	}
	raw, err := s.content(ctx, rec)
	return rec, raw, err
}

// wanted finds the checkpoint that a request means.
func (s *Service) wanted(ctx context.Context, who guideway.Principal, r LoadRequest) (Record, error) {
	if r.ID != "" {
		rec, err := s.own(ctx, who, r.ID)
		if err == nil && r.Session != "" && rec.Session != SessionID(r.Session) {
			return Record{}, guideway.Errorf(guideway.CodeInvalid, "the checkpoint %s is one of the session %s", rec.ID, rec.Session).
				WithFix("give the one or the other")
		}
		return rec, err
	}
	if r.Session == "" {
		return Record{}, guideway.Errorf(guideway.CodeInvalid, "neither a checkpoint nor a session is named").
			WithFix("give checkpointId or sessionId; workflow_checkpoint_list shows them")
	}
	key := LineKey{User: who.User, Session: SessionID(r.Session)}
	for range attempts {
		line, err := s.o.Index.Line(ctx, key)
		if err != nil {
			return Record{}, err
		}
		newest, err := s.newest(ctx, line)
		switch {
		case guideway.ErrorCode(err) == guideway.CodeConflict:
			continue // somebody saves
		case err != nil:
			return Record{}, err
		case newest == nil:
			return Record{}, guideway.Errorf(guideway.CodeNotFound, "the session %.100q has no checkpoints", r.Session).
				WithFix("workflow_checkpoint_list shows those that there are")
		}
		return *newest, nil
	}
	return Record{}, guideway.Errorf(guideway.CodeUnavailable, "others save to the session %s all the time", key.Session).WithFix("try again")
}

// own gives a checkpoint of the caller's.
func (s *Service) own(ctx context.Context, who guideway.Principal, id string) (Record, error) {
	rec, err := s.o.Index.Checkpoint(ctx, id)
	if guideway.ErrorCode(err) == guideway.CodeNotFound || (err == nil && (rec.User != who.User || rec.Kind == KindPiece)) {
		return Record{}, guideway.Errorf(guideway.CodeNotFound, "there is no checkpoint %.80q", id).
			WithFix("workflow_checkpoint_list shows those that there are")
	}
	return rec, err
}

// older finds the newest older checkpoint of the line that can be read.
func (s *Service) older(ctx context.Context, wanted Record, problem error) (Record, []byte, *Degraded, error) {
	d := &Degraded{Wanted: wanted.ID, Problem: problem.Error(), Passed: []string{wanted.ID}}
	list, err := s.o.Index.History(ctx, wanted.LineKey, History{Below: wanted.Number})
	if err != nil {
		return Record{}, nil, nil, err
	}
	for _, rec := range list {
		raw, err := s.content(ctx, rec)
		if err == nil {
			return rec, raw, d, nil
		}
		if !errors.Is(err, errDamaged) {
			return Record{}, nil, nil, err
		}
		d.Passed = append(d.Passed, rec.ID)
	}
	return Record{}, nil, nil, guideway.Errorf(guideway.CodeInternal, "the checkpoint %s cannot be read, nor any before it: %w", wanted.ID, problem).
		WithFix("restore the directory of blobs from a backup; `guideway checkpoint verify` shows what is damaged")
}

// content reads a checkpoint. An error that is errDamaged says that it cannot be
// read again; the checkpoint is then marked. One that is marked and can be read is
// unmarked.
func (s *Service) content(ctx context.Context, rec Record) ([]byte, error) {
	raw, err := s.read(ctx, rec)
	if rec.Problem == "" && err == nil {
		return raw, nil
	}
	problem := ""
	if errors.Is(err, errDamaged) {
		problem = err.Error()
	} else if err != nil {
		return nil, err
	}
	if problem != rec.Problem && !s.o.ReadOnly {
		if err := s.o.Index.Apply(ctx, Change{Line: rec.LineKey, Marks: []Mark{{ID: rec.ID, Problem: problem}}}); err != nil {
			s.o.Logger.WarnContext(ctx, "a checkpoint could not be marked", "checkpoint", rec.ID, "error", err)
		}
	}
	if problem != "" {
		s.o.Logger.ErrorContext(ctx, "a checkpoint is damaged", "checkpoint", rec.ID, "session", rec.Session, "blob", rec.Blob, "problem", problem)
	}
	return raw, err
}

// errMoved says that a checkpoint was stored anew while it was being read.
var errMoved = errors.New("it was stored anew")

// read reads a checkpoint, again where it was stored anew meanwhile.
func (s *Service) read(ctx context.Context, rec Record) ([]byte, error) {
	for range 20 {
		raw, err := s.readChain(ctx, rec)
		if !errors.Is(err, errMoved) {
			return raw, err
		}
		if rec, err = s.o.Index.Checkpoint(ctx, rec.ID); err != nil {
			return nil, err
		}
	}
	return nil, guideway.Errorf(guideway.CodeUnavailable, "the checkpoint %s is being stored anew again and again", rec.ID).WithFix("try again")
}

// readChain reads what a checkpoint is made of, and puts it together: from the one
// that is whole down to the one that is wanted.
func (s *Service) readChain(ctx context.Context, rec Record) ([]byte, error) {
	chain := []Record{rec}
	if rec.Base != "" {
		bases, err := s.o.Index.Chain(ctx, rec.Base, maxChain)
		if err != nil {
			return nil, err
		}
		chain = append(chain, bases...)
	}
	switch last := chain[len(chain)-1]; {
	case last.Base == "":
	case len(chain) > maxChain:
		return nil, damagedf("it depends on too many others")
	default:
		return nil, s.movedOr(ctx, last, damagedf("the checkpoint %s, which %s depends on, is gone", last.Base, last.ID))
	}
	raw, err := s.join(ctx, chain, true)
	if errors.Is(err, errDamaged) && len(chain) > 1 {
		return s.join(ctx, chain, false) // which says where the damage is
	}
	return raw, err
}

// join puts the links of a chain together, the one that is wanted first. Of the others
// the contents need not be right by themselves: where the one that is wanted is, what
// it is made of was.
func (s *Service) join(ctx context.Context, chain []Record, trust bool) ([]byte, error) {
	var base []byte
	buffers := [2][]byte{s.squeezer.buffer(), s.squeezer.buffer()}
	defer func() {
		s.squeezer.release(buffers[0])
		s.squeezer.release(buffers[1])
	}()
	for i, one := range slices.Backward(chain) {
		p := packed{base: base, most: s.maxRaw()}
		if i == 0 {
			return s.readOne(ctx, one, p)
		}
		p.trust, p.into = trust, buffers[i%2]
		raw, err := s.readOne(ctx, one, p)
		if err != nil {
			return nil, err
		}
		base, buffers[i%2] = raw, raw
	}
	return nil, damagedf("it is made of nothing")
}

// readOne reads one link of a chain.
func (s *Service) readOne(ctx context.Context, rec Record, p packed) ([]byte, error) {
	data, err := s.o.Blobs.Get(ctx, rec.Blob)
	switch {
	case guideway.ErrorCode(err) == guideway.CodeNotFound:
		return nil, s.movedOr(ctx, rec, damagedf("the blob of %s is gone", rec.ID))
	case errors.Is(err, blob.ErrCorrupt):
		return nil, damagedf("the blob of %s: %w", rec.ID, err)
	case err != nil:
		return nil, err
	}
	p.data = data
	if p.key, err = s.keyOf(ctx, rec.Key); err != nil {
		return nil, err
	}
	h, raw, err := s.unpack(p)
	if err != nil {
		return nil, damagedf("%s: %w", rec.ID, err)
	}
	if h.ID != rec.ID || h.Base != rec.Base || h.User != rec.User || h.Session != rec.Session || !bytes.Equal(h.Sum, rec.Sum) {
		return nil, damagedf("the blob of %s is that of %s", rec.ID, h.ID)
	}
	return raw, nil
}

// maxRaw bounds what is unpacked. A limit that was lowered later does not make
// what is there unreadable.
func (s *Service) maxRaw() int64 { return max(s.o.Limits.RawBytes, 1<<30) }

// movedOr looks whether a checkpoint was stored anew since its record was read.
func (s *Service) movedOr(ctx context.Context, rec Record, damage error) error {
	now, err := s.o.Index.Checkpoint(ctx, rec.ID)
	switch {
	case guideway.ErrorCode(err) == guideway.CodeNotFound:
		return errMoved // who reads it finds that out
	case err != nil:
		return err
	case now.Form != rec.Form:
		return errMoved
	}
	return damage
}

// choose takes some keys out of a context, as they stand in it.
func choose(raw []byte, keys []string) (chosen json.RawMessage, missing []string, err error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, nil, guideway.Errorf(guideway.CodeInternal, "read the context: %w", err)
	}
	some := map[string]json.RawMessage{}
	for _, key := range keys {
		value, there := all[key]
		if !there {
			missing = append(missing, key)
			continue
		}
		some[key] = value
	}
	chosen, err = jsontext.Marshal(some)
	return chosen, missing, err
}

// otherHeads gives the last checkpoints of the branches that a checkpoint is not
// on the end of.
func (s *Service) otherHeads(ctx context.Context, rec Record) ([]string, error) {
	heads, err := s.o.Index.Checkpoints(ctx, Filter{User: rec.User, Session: rec.Session, Heads: true})
	if err != nil || len(heads) < 2 {
		return nil, err
	}
	var others []string
	for _, r := range heads {
		if r.ID != rec.ID {
			others = append(others, r.ID)
		}
	}
	return others, nil
}
