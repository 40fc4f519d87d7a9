package checkpoint

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/blob"
	"github.com/guideway-dev/guideway/internal/platform/ctxsleep"
)

const (
	// grace is how old something must be that nobody may still be working on.
	grace = 15 * time.Minute
	// defaultSettle is Options.Settle.
	defaultSettle = 2 * time.Second
	// pageSize is how many records are read at once where all are.
	pageSize = 1000
)

// survey compares the blobs with the index.
type survey struct {
	// records are those of the index, by their ids.
	records map[string]Record
	// there are the blobs that exist.
	there map[blob.Name]blob.Info
	// strangers are blobs that no record has, by the ids that they say they are.
	strangers map[string][]Record
	// garbled are blobs that do not say what they are.
	garbled []blob.Info
	// wrong are records that their blobs contradict; only a deep survey looks.
	wrong []Record
	// numbers are those that records have.
	numbers map[numbered]bool
}

// survey looks at all records and all blobs. Strangers younger than age are left
// out. A deep one also reads the blobs that are known, for what they say of their
// records.
func (s *Service) survey(ctx context.Context, age time.Duration, deep bool) (*survey, error) {
	v := &survey{
		records: map[string]Record{}, there: map[blob.Name]blob.Info{}, strangers: map[string][]Record{}, numbers: map[numbered]bool{},
	}
	// The blobs first: a checkpoint that is saved meanwhile is in the index then.
	err := s.o.Blobs.Each(ctx, func(info blob.Info) error {
		v.there[info.Name] = info
		return nil
	})
	if err != nil {
		return nil, err
	}
	known := map[blob.Name][]Record{}
	err = s.eachRecord(ctx, func(r Record) {
		v.records[r.ID] = r
		v.numbers[numbered{r.LineKey, r.Number}] = true
		known[r.Blob] = append(known[r.Blob], r)
	})
	if err != nil {
		return nil, err
	}
	now := s.clock()
	for name, info := range v.there {
		owners := known[name]
		if (len(owners) > 0 && !deep) || (len(owners) == 0 && age > 0 && now.Sub(info.Modified) < age) {
			continue
		}
		if err := s.look(ctx, v, info, owners); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// look reads one blob for a survey; owners are the records that name it.
func (s *Service) look(ctx context.Context, v *survey, info blob.Info, owners []Record) error {
	data, err := s.o.Blobs.Get(ctx, info.Name)
	switch {
	case guideway.ErrorCode(err) == guideway.CodeNotFound:
		return nil // it has just gone
	case errors.Is(err, blob.ErrCorrupt):
		v.garbled = append(v.garbled, info)
		return nil
	case err != nil:
		return err
	}
	h, _, _, err := open(data)
	if err != nil {
		v.garbled = append(v.garbled, info)
		return nil //nolint:nilerr // it is told of
	}
	r := h.record(info.Name, int64(len(data)))
	wrong := v.misfits(r, owners)
	v.wrong = append(v.wrong, wrong...)
	if len(wrong) == len(owners) {
		v.strangers[h.ID] = append(v.strangers[h.ID], r)
	}
	return nil
}

// eachRecord tells of all records of all users, pieces included.
func (s *Service) eachRecord(ctx context.Context, visit func(Record)) error {
	f := Filter{All: true, Limit: pageSize}
	for {
		list, err := s.o.Index.Checkpoints(ctx, f)
		if err != nil {
			return err
		}
		for _, r := range list {
			visit(r)
		}
		if len(list) < pageSize {
			return nil
		}
		last := list[len(list)-1]
		f.Before = &Cursor{Pos: last.Pos, ID: last.ID}
	}
}

// Rebuild takes up what the blobs have and the index has not: after a database was
// lost or restored from an older backup, or the other kind of store was used for a
// while. What was deleted stays deleted.
func (s *Service) Rebuild(ctx context.Context) (Rebuilt, error) {
	if err := s.writable("rebuild the index"); err != nil {
		return Rebuilt{}, err
	}
	return s.rebuild(ctx)
}

func (s *Service) rebuild(ctx context.Context) (Rebuilt, error) {
	mender, mendable := s.o.Index.(Mender)
	if mendable {
		if err := mender.Mend(ctx); err != nil {
			return Rebuilt{}, err
		}
	}
	v, err := s.settled(ctx, mendable)
	if err != nil {
		return Rebuilt{}, err
	}
	v.disown()
	if err := s.drop(ctx, v); err != nil {
		return Rebuilt{}, err
	}
	out, err := s.reconcile(ctx, v)
	if err == nil && mendable {
		err = mender.Mend(ctx)
	}
	return out, err
}

// settled is a survey without the strangers that are being saved just now: one that
// is young must still be one after a while, and what is new by then is left out.
func (s *Service) settled(ctx context.Context, deep bool) (*survey, error) {
	first, err := s.survey(ctx, 0, deep)
	settle := cmp.Or(s.o.Settle, defaultSettle)
	if err != nil || settle < 0 || !first.young(settle) {
		return first, err
	}
	if ctxsleep.For(ctx, settle) != nil {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "look through the blobs of checkpoints: %w", ctx.Err())
	}
	v, err := s.survey(ctx, 0, deep)
	if err != nil {
		return nil, err
	}
	for id, forms := range v.strangers {
		v.strangers[id] = slices.DeleteFunc(forms, func(r Record) bool {
			_, was := first.there[r.Blob]
			return !was
		})
		if len(v.strangers[id]) == 0 {
			delete(v.strangers, id)
		}
	}
	return v, nil
}

// young says whether a stranger may still be one that is being saved. Files have
// the time of the system, whatever the service's clock says.
func (v *survey) young(settle time.Duration) bool {
	for _, forms := range v.strangers {
		for _, r := range forms {
			if time.Since(v.there[r.Blob].Modified) < settle {
				return true
			}
		}
	}
	return false
}

// reconcile makes the index fit a survey.
func (s *Service) reconcile(ctx context.Context, v *survey) (Rebuilt, error) {
	out := Rebuilt{Damaged: len(v.garbled)}
	deleted, err := s.deletedOf(ctx, v)
	if err != nil {
		return out, err
	}
	lines := map[LineKey][]Record{}
	var gone []Record // records whose blob is not there, while another form is
	for id, forms := range v.strangers {
		known, there := v.records[id]
		switch _, fine := v.there[known.Blob]; {
		case deleted[id], there && fine: // a form that was given up
		case there:
			gone = append(gone, known)
		default:
			best := slices.MinFunc(forms, func(a, b Record) int {
				return cmp.Or(cmp.Compare(len(a.Base), len(b.Base)), cmp.Compare(a.Blob, b.Blob))
			})
			lines[best.LineKey] = append(lines[best.LineKey], best)
		}
	}
	for key, list := range lines {
		n, err := s.adopt(ctx, key, list)
		out.Adopted += n
		if err != nil {
			return out, err
		}
	}
	for _, known := range slices.Backward(sortedByNumber(gone)) { // older ones need newer ones
		mended, err := s.mend(ctx, known, v.strangers[known.ID])
		if err != nil {
			return out, err
		}
		out.Mended += mended
	}
	return out, nil
}

// deletedOf says which strangers were deleted.
func (s *Service) deletedOf(ctx context.Context, v *survey) (map[string]bool, error) {
	var ids []string
	for id := range v.strangers {
		if _, known := v.records[id]; !known {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	return s.o.Index.Deleted(ctx, ids)
}

// mend has a record whose blob is gone take another form that there is, the first
// that can be read.
func (s *Service) mend(ctx context.Context, rec Record, forms []Record) (int, error) {
	for _, form := range forms {
		with := rec
		with.Form = form.Form
		if _, err := s.read(ctx, with); err != nil {
			continue
		}
		err := s.o.Index.Apply(ctx, Change{
			Line: rec.LineKey, Swaps: []Swap{{ID: rec.ID, Old: rec.Blob, New: form.Form}}, Marks: []Mark{{ID: rec.ID}},
		})
		if guideway.ErrorCode(err) == guideway.CodeConflict {
			return 0, nil
		}
		return 1, err
	}
	return 0, nil
}

// adopt adds checkpoints of a line that the index does not know.
func (s *Service) adopt(ctx context.Context, key LineKey, list []Record) (adopted int, err error) {
	unlock := s.lines.lock(key)
	defer unlock()
	list = slices.SortedFunc(slices.Values(list), func(a, b Record) int {
		return cmp.Or(cmp.Compare(a.Number, b.Number), a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID))
	})
	found := s.wordsOf(ctx, list)
	for _, r := range list {
		text, readable := found[r.ID]
		change := Change{
			Line: key, Add: &r, Adopt: true, Words: text, NoWords: r.Key != "", At: r.Created, Touch: true,
			Audit: []Entry{{At: s.clock(), Action: ActionRebuild, LineKey: key, Checkpoint: r.ID, Client: "guideway"}},
		}
		if !readable {
			r.Problem = "it could not be read when the index was made anew"
		}
		err := s.o.Index.Apply(ctx, change)
		if guideway.ErrorCode(err) == guideway.CodeConflict && r.Kind != KindPiece {
			// Its number is taken, or it has come in meanwhile.
			if _, err := s.o.Index.Checkpoint(ctx, r.ID); err == nil {
				continue
			}
			line, lineErr := s.o.Index.Line(ctx, key)
			if lineErr != nil {
				return adopted, lineErr
			}
			r.Number = line.Last + 1
			err = s.o.Index.Apply(ctx, change)
		}
		switch {
		case err == nil:
			adopted++
		case guideway.ErrorCode(err) != guideway.CodeConflict:
			return adopted, err
		}
	}
	return adopted, nil
}

// wordsOf gives the words of the checkpoints that can be read, by their ids.
func (s *Service) wordsOf(ctx context.Context, list []Record) map[string]string {
	found := map[string]string{}
	known := map[string]Record{}
	for _, r := range list {
		known[r.ID] = r
	}
	s.eachContent(ctx, list, known, func(r Record, raw []byte, err error) {
		if err != nil {
			return
		}
		found[r.ID] = ""
		if r.Key != "" || r.Kind == KindPiece {
			return
		}
		if tree, err := decode(raw); err == nil {
			found[r.ID] = words(tree, s.secrets.Scan(tree))
		}
	})
	return found
}

// eachContent reads the checkpoints of a line, each once: the newest first, whose
// content the older ones need. Bases that are not in the list are looked up in
// known, and then in the index.
func (s *Service) eachContent(ctx context.Context, list []Record, known map[string]Record, visit func(Record, []byte, error)) {
	const kept = 8 // contents, in case there are branches
	contents := map[string][]byte{}
	var order []string
	for _, r := range slices.Backward(sortedByNumber(list)) {
		var base []byte
		var err error
		if r.Base != "" {
			var there bool
			if base, there = contents[r.Base]; !there {
				if _, listed := known[r.Base]; listed {
					err = damagedf("the checkpoint %s, which %s depends on, cannot be read", r.Base, r.ID)
				} else if next, lookErr := s.o.Index.Checkpoint(ctx, r.Base); lookErr != nil {
					err = damagedf("the checkpoint %s, which %s depends on, is gone", r.Base, r.ID)
				} else {
					base, err = s.read(ctx, next)
				}
			}
		}
		var raw []byte
		if err == nil {
			raw, err = s.readOne(ctx, r, packed{base: base, most: s.maxRaw()})
		}
		if err == nil {
			contents[r.ID] = raw
			if order = append(order, r.ID); len(order) > kept {
				delete(contents, order[0])
				order = order[1:]
			}
		}
		visit(r, raw, err)
	}
}
