package checkpoint

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/blob"
	"github.com/guideway-dev/guideway/internal/platform/jsontext"
)

// maxChain bounds the records read for one checkpoint. It is larger than the distance
// between two whole checkpoints.
const maxChain = 4 * keyframeEvery

// Load returns a context as it was saved, or a fragment. If the requested checkpoint is damaged, Load
// returns the newest older readable checkpoint of the session and sets Degraded. It returns
// CodeNotFound if the checkpoint does not exist or belongs to another user, CodeUnavailable
// if the checkpoint cannot be read now, because a key is missing or the disk fails, and
// CodeInternal if it and all older checkpoints are damaged.
func (s *Service) Load(ctx context.Context, who guideway.Principal, r LoadRequest) (*Loaded, error) {
	if err := s.prepareRead(ctx, "load a checkpoint"); err != nil {
		return nil, err
	}
	out := &Loaded{}
	rec, raw, err := s.findContent(ctx, who, r)
	if errors.Is(err, errDamaged) && s.repairIndex(ctx, r.ID+" "+who.User+" "+SessionID(r.Session)) {
		rec, raw, err = s.findContent(ctx, who, r)
	}
	switch {
	case errors.Is(err, errDamaged) && rec.ID == "": // the requested checkpoint is unknown
		err = newMismatch("load a checkpoint", err)
	case errors.Is(err, errDamaged) && rec.Kind == KindFragment: // no older checkpoint can replace a fragment
		err = guideway.Errorf(guideway.CodeInternal, "the stored context %s cannot be read: %w", rec.ID, err)
	case errors.Is(err, errDamaged):
		rec, raw, out.Degraded, err = s.findOlder(ctx, rec, err)
	}
	if err != nil {
		return nil, err
	}
	out.Record, out.Context, out.Store, out.Warnings = rec, raw, s.o.Store, s.memoryWarning()
	if len(r.Keys) > 0 {
		var all map[string]json.RawMessage
		if err := json.Unmarshal(raw, &all); err != nil {
			return nil, guideway.Errorf(guideway.CodeInternal, "read the context: %w", err)
		}
		all, out.Missing = SelectKeys(all, r.Keys)
		if out.Context, err = jsontext.Marshal(all); err != nil {
			return nil, err
		}
	}
	if out.Heads, err = s.otherHeads(ctx, rec); err != nil {
		return nil, err
	}
	s.activityLog.addEntry(Entry{At: s.currentTime(), Action: ActionLoad, SeriesKey: rec.SeriesKey, Checkpoint: rec.ID, Client: who.Client}, true)
	s.o.Logger.DebugContext(ctx, "a checkpoint was loaded", "checkpoint", rec.ID, "session", rec.Session)
	return out, nil
}

// findContent selects and reads the requested checkpoint.
func (s *Service) findContent(ctx context.Context, who guideway.Principal, r LoadRequest) (Record, []byte, error) {
	rec, err := s.findRecord(ctx, who, r)
	if err != nil {
		return Record{}, nil, err
	}
	raw, err := s.readContent(ctx, rec)
	return rec, raw, err
}

// findRecord selects the requested checkpoint.
func (s *Service) findRecord(ctx context.Context, who guideway.Principal, r LoadRequest) (Record, error) {
	if r.ID != "" {
		rec, err := s.ownRecord(ctx, who, r.ID)
		if err == nil && r.Session != "" && rec.Session != SessionID(r.Session) {
			return Record{}, guideway.Errorf(guideway.CodeInvalid, "the checkpoint %s belongs to the session %s", rec.ID, rec.Session).
				WithFix("pass only checkpointId, or the sessionId of the checkpoint")
		}
		return rec, err
	}
	if r.Session == "" {
		return Record{}, guideway.Errorf(guideway.CodeInvalid, "a checkpoint or a session is required").
			WithFix("pass a checkpointId or a sessionId that workflow_checkpoint_list returned")
	}
	key := SeriesKey{User: who.User, Session: SessionID(r.Session)}
	for range attempts {
		series, err := s.o.Index.Series(ctx, key)
		if err != nil {
			return Record{}, err
		}
		newest, err := s.newestRecord(ctx, series)
		switch {
		case guideway.ErrorCode(err) == guideway.CodeConflict:
			continue // another process is saving
		case err != nil:
			return Record{}, err
		case newest == nil:
			return Record{}, guideway.Errorf(guideway.CodeNotFound, "the session %.100q has no checkpoints", r.Session).
				WithFix("workflow_checkpoint_list lists the existing checkpoints")
		}
		return *newest, nil
	}
	return Record{}, guideway.Errorf(guideway.CodeUnavailable, "other processes keep saving to the session %s", key.Session).WithFix("try again")
}

// ownRecord returns a checkpoint or a fragment of the caller.
func (s *Service) ownRecord(ctx context.Context, who guideway.Principal, id string) (Record, error) {
	rec, err := s.o.Index.Checkpoint(ctx, id)
	if guideway.ErrorCode(err) == guideway.CodeNotFound || (err == nil && rec.User != who.User) {
		return Record{}, guideway.Errorf(guideway.CodeNotFound, "there is no checkpoint %.80q", id).
			WithFix("workflow_checkpoint_list lists the existing checkpoints")
	}
	return rec, err
}

// findOlder returns the newest older readable checkpoint of the series.
func (s *Service) findOlder(ctx context.Context, wanted Record, problem error) (Record, []byte, *Degraded, error) {
	d := &Degraded{Wanted: wanted.ID, Problem: problem.Error(), Passed: []string{wanted.ID}}
	list, err := s.o.Index.History(ctx, wanted.SeriesKey, History{Below: wanted.Number})
	if err != nil {
		return Record{}, nil, nil, err
	}
	for _, rec := range list {
		raw, err := s.readContent(ctx, rec)
		if err == nil {
			return rec, raw, d, nil
		}
		if !errors.Is(err, errDamaged) {
			return Record{}, nil, nil, err
		}
		d.Passed = append(d.Passed, rec.ID)
	}
	return Record{}, nil, nil, guideway.Errorf(guideway.CodeInternal, "neither the checkpoint %s nor any earlier one can be read: %w", wanted.ID, problem).
		WithFix("restore the directory contexts of the data directory, or the database, from a backup; `guideway checkpoint verify` lists the damaged checkpoints")
}

// readContent reads a checkpoint. An errDamaged error is permanent; the checkpoint is then
// marked. A marked checkpoint that can be read is unmarked.
func (s *Service) readContent(ctx context.Context, rec Record) ([]byte, error) {
	raw, err := s.readRetrying(ctx, rec)
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
		if err := s.o.Index.Apply(ctx, Change{Series: rec.SeriesKey, Marks: []Mark{{ID: rec.ID, Problem: problem}}}); err != nil {
			s.o.Logger.WarnContext(ctx, "the damage mark of a checkpoint could not be updated", "checkpoint", rec.ID, "error", err)
		}
	}
	if problem != "" {
		s.o.Logger.ErrorContext(ctx, "a checkpoint is damaged", "checkpoint", rec.ID, "session", rec.Session, "blob", rec.Blob, "problem", problem)
	}
	return raw, err
}

// errMoved is returned if a checkpoint was stored again or deleted while it was read.
var errMoved = errors.New("the checkpoint was stored again")

// readRetrying reads a checkpoint; it retries if the checkpoint was stored again during the read.
func (s *Service) readRetrying(ctx context.Context, rec Record) ([]byte, error) {
	for range 20 {
		raw, err := s.readChain(ctx, rec)
		if !errors.Is(err, errMoved) {
			return raw, err
		}
		if rec, err = s.o.Index.Checkpoint(ctx, rec.ID); err != nil {
			return nil, err
		}
	}
	return nil, guideway.Errorf(guideway.CodeUnavailable, "other processes keep storing the checkpoint %s again", rec.ID).WithFix("try again")
}

// readChain reads a checkpoint and those it depends on, and applies the deltas, from the
// whole checkpoint to the requested one.
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
		return nil, damagedf("the checkpoint %s depends on more than %d other checkpoints", rec.ID, maxChain)
	default:
		return nil, s.checkMoved(ctx, last, damagedf("the checkpoint %s, which %s depends on, is missing", last.Base, last.ID))
	}
	raw, err := s.joinChain(ctx, chain, true)
	if errors.Is(err, errDamaged) && len(chain) > 1 {
		return s.joinChain(ctx, chain, false) // find the damaged link
	}
	return raw, err
}

// joinChain applies the deltas of a chain, whose first link is the requested checkpoint. If
// trust is set, it checks only the hash of the requested content, which also detects errors
// in the other links.
func (s *Service) joinChain(ctx context.Context, chain []Record, trust bool) ([]byte, error) {
	var base []byte
	buffers := [2][]byte{s.squeezer.takeBuffer(), s.squeezer.takeBuffer()}
	defer func() {
		s.squeezer.releaseBuffer(buffers[0])
		s.squeezer.releaseBuffer(buffers[1])
	}()
	for i, one := range slices.Backward(chain) {
		p := packedBlob{base: base, most: s.maxRawBytes()}
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
	return nil, damagedf("the checkpoint has no content")
}

// readOne reads the content of one link of a chain.
func (s *Service) readOne(ctx context.Context, rec Record, p packedBlob) ([]byte, error) {
	data, err := s.o.Blobs.Get(ctx, rec.Blob)
	switch {
	case guideway.ErrorCode(err) == guideway.CodeNotFound:
		return nil, s.checkMoved(ctx, rec, damagedf("the blob of the checkpoint %s is missing", rec.ID))
	case errors.Is(err, blob.ErrCorrupt):
		return nil, damagedf("read the checkpoint %s: %w", rec.ID, err)
	case err != nil:
		return nil, err
	}
	p.data = data
	if p.key, err = s.keyOf(ctx, rec.Key); err != nil {
		return nil, err
	}
	h, raw, err := s.unpackBlob(p)
	if err != nil {
		return nil, fmt.Errorf("read the checkpoint %s: %w", rec.ID, err)
	}
	if h.ID != rec.ID {
		return nil, damagedf("the blob of the checkpoint %s contains the checkpoint %s", rec.ID, h.ID)
	}
	if h.Base != rec.Base || h.User != rec.User || h.Session != rec.Session || !bytes.Equal(h.Sum, rec.Sum) {
		return nil, damagedf("the blob of the checkpoint %s does not match its record in the index", rec.ID)
	}
	return raw, nil
}

// maxRawBytes is the maximum size of an unpacked content. A limit that was lowered later does
// not make existing checkpoints unreadable.
func (s *Service) maxRawBytes() int64 { return max(s.o.Limits.RawBytes, 1<<30) }

// checkMoved returns errMoved if a checkpoint was deleted or stored again since its record
// was read, otherwise damage.
func (s *Service) checkMoved(ctx context.Context, rec Record, damage error) error {
	now, err := s.o.Index.Checkpoint(ctx, rec.ID)
	switch {
	case guideway.ErrorCode(err) == guideway.CodeNotFound:
		return errMoved // the next read reports the error
	case err != nil:
		return err
	case now.Form != rec.Form:
		return errMoved
	}
	return damage
}

// SelectKeys returns the members of a context with the keys, and the missing keys.
func SelectKeys(all map[string]json.RawMessage, keys []string) (some map[string]json.RawMessage, missing []string) {
	some = map[string]json.RawMessage{}
	for _, key := range keys {
		if value, there := all[key]; there {
			some[key] = value
		} else {
			missing = append(missing, key)
		}
	}
	return some, missing
}

// otherHeads returns the checkpoints of the series without a successor, except rec, if
// there are at least two.
func (s *Service) otherHeads(ctx context.Context, rec Record) ([]string, error) {
	newest, err := s.o.Index.History(ctx, rec.SeriesKey, History{Limit: 1})
	if err != nil || len(newest) == 0 || newest[0].Number == newest[0].Link+1 { // all others are its ancestors
		return nil, err
	}
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
