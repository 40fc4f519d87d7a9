package checkpoint

import (
	"bytes"
	"context"
	"time"

	"github.com/guideway-dev/guideway"
)

// Mender is an index whose records may become damaged without anybody noticing,
// because nothing guards single values. Others guard what they keep themselves.
type Mender interface {
	// Mend makes right what follows from the records: its own look-ups, and what
	// lines add up to. Totals of lines without records go.
	Mend(ctx context.Context) error
	// Drop takes records out as if they had never been there: no successor gets
	// another parent, and nothing remembers them as deleted.
	Drop(ctx context.Context, ids []string) error
}

const (
	// healAgain is how long after a look for the same damage another one waits.
	healAgain = 10 * time.Minute
	// maxHealed bounds how many looks are remembered.
	maxHealed = 1000
)

// heal makes the index fit the blobs, deeply, after something was found that does
// not fit. It says whether it looked: for the same thing it does so once in a
// while. What the blobs themselves have lost it cannot bring back.
func (s *Service) heal(ctx context.Context, about string) bool {
	if s.o.ReadOnly && !s.volatile() {
		return false
	}
	now := s.clock()
	s.healing.Lock()
	defer s.healing.Unlock()
	if last, there := s.healed[about]; there && now.Sub(last) < healAgain && !now.Before(last) {
		return false
	}
	if s.healed == nil || len(s.healed) > maxHealed {
		s.healed = map[string]time.Time{}
	}
	s.healed[about] = now
	made, err := s.rebuild(ctx)
	if err != nil {
		s.o.Logger.ErrorContext(ctx, "the index of checkpoints does not fit the blobs and could not be mended", "about", about, "error", err)
		return false
	}
	s.o.Logger.WarnContext(ctx, "something of the index of checkpoints did not fit the blobs, which were looked through",
		"about", about, "adopted", made.Adopted, "mended", made.Mended, "damaged", made.Damaged)
	return true
}

// misfits are records of which the blob that they name says something else.
func (v *survey) misfits(h Record, known []Record) (list []Record) {
	for _, rec := range known {
		_, taken := v.numbers[numbered{h.LineKey, h.Number}]
		if !sameCheckpoint(rec, h) || rec.Base != h.Base || rec.Key != h.Key || rec.Stored != h.Stored || (rec.Number != h.Number && !taken) {
			list = append(list, rec)
		}
	}
	return list
}

// sameCheckpoint says whether two records are of one checkpoint, however it is
// stored.
func sameCheckpoint(a, b Record) bool {
	return a.ID == b.ID && a.LineKey == b.LineKey && a.Bytes == b.Bytes && a.Run == b.Run && a.Kind == b.Kind && bytes.Equal(a.Sum, b.Sum)
}

// disown adds the records to the wrong ones that have no blob, while there is one
// that says it is theirs, and something else than they do.
func (v *survey) disown() {
	for id, forms := range v.strangers {
		rec, known := v.records[id]
		if _, fine := v.there[rec.Blob]; known && !fine && !sameCheckpoint(rec, forms[0]) {
			v.wrong = append(v.wrong, rec)
		}
	}
}

// numbered is a number of a line.
type numbered struct {
	LineKey
	number int64
}

// drop takes the misfits of a survey out of the index, so that what their blobs
// say is taken up again.
func (s *Service) drop(ctx context.Context, v *survey) error {
	mender, ok := s.o.Index.(Mender)
	if !ok || len(v.wrong) == 0 {
		return nil
	}
	ids := make([]string, 0, len(v.wrong))
	for _, rec := range v.wrong {
		ids = append(ids, rec.ID)
		delete(v.records, rec.ID)
	}
	return mender.Drop(ctx, ids)
}

// misfit says that the index does not fit the blobs, and could not be mended.
func misfit(doing string, err error) error {
	return guideway.Errorf(guideway.CodeInternal, "%s: %w", doing, err).
		WithFix("run `guideway checkpoint verify --rebuild`, which makes the index anew from the blobs")
}

// newest gives the last checkpoint of a line; nil where there is none. That what
// the index says of the line does not fit its records is damage: somebody would
// go on from an old context and not know it.
func (s *Service) newest(ctx context.Context, line Line) (*Record, error) {
	list, err := s.o.Index.History(ctx, line.LineKey, History{Limit: 1})
	if err != nil {
		return nil, err
	}
	var last int64
	var newest *Record
	if len(list) > 0 {
		newest, last = &list[0], list[0].Number
	}
	if last == line.Last {
		return newest, nil
	}
	// The last one may just have been deleted, or another one been saved.
	all, err := s.o.Index.History(ctx, line.LineKey, History{})
	if err != nil {
		return nil, err
	}
	now, err := s.o.Index.Line(ctx, line.LineKey)
	switch {
	case err != nil:
		return nil, err
	case now.Last != line.Last || now.Count != line.Count:
		return nil, guideway.Errorf(guideway.CodeConflict, "the session %s changes", line.Session)
	case last > line.Last, len(all) != line.Count, len(all) > 0 && all[len(all)-1].Number < 1:
		return nil, damagedf("the index has %d checkpoints of the session %s, the last of them %d, and says that there are %d, the last of them %d",
			len(all), line.Session, last, line.Count, line.Last)
	}
	return newest, nil
}
