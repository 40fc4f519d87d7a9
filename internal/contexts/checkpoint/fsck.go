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
	// grace is the age from which a blob is assumed not to belong to a save in progress.
	grace = 15 * time.Minute
	// defaultSettle is the default of Options.Settle.
	defaultSettle = 2 * time.Second
	// pageSize is the number of records read per query when all records are read.
	pageSize = 1000
)

// surveyResult is the result of comparing the blobs with the index.
type surveyResult struct {
	// records are the records of the index by id.
	records map[string]Record
	// existing are the existing blobs.
	existing map[blob.Name]blob.Info
	// orphans are blobs without a matching record, by the id in their header.
	orphans map[string][]Record
	// unreadable are blobs without a readable header.
	unreadable []blob.Info
	// mismatched are records that differ from the header of their blob; only a deep survey fills
	// it.
	mismatched []Record
	// numbers are the checkpoint numbers in use.
	numbers map[seriesNumber]bool
}

// surveyBlobs reads all records, the names of all blobs, and the headers of the unknown
// blobs that are not younger than age. A deep survey also reads the headers of known blobs.
func (s *Service) surveyBlobs(ctx context.Context, age time.Duration, deep bool) (*surveyResult, error) {
	v := &surveyResult{
		records: map[string]Record{}, existing: map[blob.Name]blob.Info{}, orphans: map[string][]Record{}, numbers: map[seriesNumber]bool{},
	}
	// Read the blobs first, so that the index already contains a checkpoint that is saved
	// during the survey.
	err := s.o.Blobs.Each(ctx, func(info blob.Info) error {
		v.existing[info.Name] = info
		return nil
	})
	if err != nil {
		return nil, err
	}
	known := map[blob.Name][]Record{}
	err = s.eachRecord(ctx, Filter{All: true}, func(r Record) {
		v.records[r.ID] = r
		v.numbers[seriesNumber{r.SeriesKey, r.Number}] = true
		known[r.Blob] = append(known[r.Blob], r)
	})
	if err != nil {
		return nil, err
	}
	now := s.currentTime()
	for name, info := range v.existing {
		owners := known[name]
		if (len(owners) > 0 && !deep) || (len(owners) == 0 && age > 0 && now.Sub(info.Modified) < age) {
			continue
		}
		if err := s.inspectBlob(ctx, v, info, owners); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// inspectBlob reads one blob and adds it to the survey. owners are the records that refer
// to the blob.
func (s *Service) inspectBlob(ctx context.Context, v *surveyResult, info blob.Info, owners []Record) error {
	data, err := s.o.Blobs.Get(ctx, info.Name)
	switch {
	case guideway.ErrorCode(err) == guideway.CodeNotFound:
		return nil // another process has just removed the blob
	case errors.Is(err, blob.ErrCorrupt):
		v.unreadable = append(v.unreadable, info)
		return nil
	case err != nil:
		return err
	}
	h, _, _, err := splitBlob(data)
	if err != nil {
		v.unreadable = append(v.unreadable, info)
		return nil //nolint:nilerr // the survey reports the blob as unreadable
	}
	r := h.toRecord(info.Name, int64(len(data)))
	wrong := v.mismatches(r, owners)
	v.mismatched = append(v.mismatched, wrong...)
	if len(wrong) == len(owners) {
		v.orphans[h.ID] = append(v.orphans[h.ID], r)
	}
	return nil
}

// eachRecord visits the records that a filter selects.
func (s *Service) eachRecord(ctx context.Context, f Filter, visit func(Record)) error {
	f.Limit = pageSize
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

// Rebuild adds to the index the checkpoints that only the blobs have: after a database was
// lost or restored from an older backup, or another kind of store was used for a while. It
// also replaces records that do not match their blobs. Deleted checkpoints stay deleted.
func (s *Service) Rebuild(ctx context.Context) (Rebuilt, error) {
	if err := s.requireWritable("rebuild the index"); err != nil {
		return Rebuilt{}, err
	}
	return s.rebuildIndex(ctx)
}

func (s *Service) rebuildIndex(ctx context.Context) (Rebuilt, error) {
	repairer, mendable := s.o.Index.(Repairer)
	if mendable {
		if err := repairer.Repair(ctx); err != nil {
			return Rebuilt{}, err
		}
	}
	v, err := s.surveySettled(ctx, mendable)
	if err != nil {
		return Rebuilt{}, err
	}
	v.markOrphaned()
	if err := s.dropMismatches(ctx, v); err != nil {
		return Rebuilt{}, err
	}
	out, err := s.reconcileIndex(ctx, v)
	if err == nil && mendable {
		err = repairer.Repair(ctx)
	}
	return out, err
}

// surveySettled returns a survey without blobs that are being saved: it checks young
// unknown blobs again after a while, and excludes blobs that are new by then.
func (s *Service) surveySettled(ctx context.Context, deep bool) (*surveyResult, error) {
	first, err := s.surveyBlobs(ctx, 0, deep)
	settle := cmp.Or(s.o.Settle, defaultSettle)
	if err != nil || settle < 0 || !first.isYoung(settle) {
		return first, err
	}
	if ctxsleep.For(ctx, settle) != nil {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "read the checkpoint blobs: %w", ctx.Err())
	}
	v, err := s.surveyBlobs(ctx, 0, deep)
	if err != nil {
		return nil, err
	}
	for id, forms := range v.orphans {
		v.orphans[id] = slices.DeleteFunc(forms, func(r Record) bool {
			_, was := first.existing[r.Blob]
			return !was
		})
		if len(v.orphans[id]) == 0 {
			delete(v.orphans, id)
		}
	}
	return v, nil
}

// isYoung reports whether an unknown blob may belong to a save in progress. It compares the
// times of files with the system's clock, because the service's clock may differ.
func (v *surveyResult) isYoung(settle time.Duration) bool {
	for _, forms := range v.orphans {
		for _, r := range forms {
			if time.Since(v.existing[r.Blob].Modified) < settle {
				return true
			}
		}
	}
	return false
}

// reconcileIndex updates the index according to a survey.
func (s *Service) reconcileIndex(ctx context.Context, v *surveyResult) (Rebuilt, error) {
	out := Rebuilt{Damaged: len(v.unreadable)}
	deleted, err := s.deletedOf(ctx, v)
	if err != nil {
		return out, err
	}
	seriesList := map[SeriesKey][]Record{}
	var gone []Record // gone are the records whose blob is missing, while a blob in a different form exists
	for id, forms := range v.orphans {
		known, there := v.records[id]
		switch _, fine := v.existing[known.Blob]; {
		case deleted[id], there && fine: // the blob is an older form of a checkpoint
		case there:
			gone = append(gone, known)
		default:
			best := slices.MinFunc(forms, func(a, b Record) int {
				return cmp.Or(cmp.Compare(len(a.Base), len(b.Base)), cmp.Compare(a.Blob, b.Blob))
			})
			seriesList[best.SeriesKey] = append(seriesList[best.SeriesKey], best)
		}
	}
	for key, list := range seriesList {
		n, err := s.adoptRecords(ctx, key, list)
		out.Adopted += n
		if err != nil {
			return out, err
		}
	}
	for _, known := range slices.Backward(sortedByNumber(gone)) { // older records depend on newer ones
		mended, err := s.replaceBlob(ctx, known, v.orphans[known.ID])
		if err != nil {
			return out, err
		}
		out.Mended += mended
	}
	return out, nil
}

// deletedOf reports which unknown checkpoints were deleted.
func (s *Service) deletedOf(ctx context.Context, v *surveyResult) (map[string]bool, error) {
	var ids []string
	for id := range v.orphans {
		if _, known := v.records[id]; !known {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	return s.o.Index.Deleted(ctx, ids)
}

// replaceBlob changes a record whose blob is missing to the first of the other forms that
// can be read. It returns the number of changed records, 0 or 1.
func (s *Service) replaceBlob(ctx context.Context, rec Record, forms []Record) (int, error) {
	for _, form := range forms {
		with := rec
		with.Form = form.Form
		if _, err := s.readRetrying(ctx, with); err != nil {
			continue
		}
		err := s.o.Index.Apply(ctx, Change{
			Series: rec.SeriesKey, Swaps: []Swap{{ID: rec.ID, Old: rec.Blob, New: form.Form}}, Marks: []Mark{{ID: rec.ID}},
		})
		if guideway.ErrorCode(err) == guideway.CodeConflict {
			return 0, nil
		}
		return 1, err
	}
	return 0, nil
}

// adoptRecords adds checkpoints of a series to the index, and returns their number.
func (s *Service) adoptRecords(ctx context.Context, key SeriesKey, list []Record) (adopted int, err error) {
	unlock := s.locks.lockSeries(key)
	defer unlock()
	list = slices.SortedFunc(slices.Values(list), func(a, b Record) int {
		return cmp.Or(cmp.Compare(a.Number, b.Number), a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID))
	})
	found := s.termsOf(ctx, list)
	for _, r := range list {
		terms, readable := found[r.ID]
		change := Change{
			Series: key, Add: &r, Adopt: true, Terms: terms, At: r.Created, Touch: true,
			Audit: []Entry{{At: s.currentTime(), Action: ActionRebuild, SeriesKey: key, Checkpoint: r.ID, Client: "guideway"}},
		}
		if !readable {
			r.Problem = "the checkpoint could not be read when the index was rebuilt"
		}
		err := s.o.Index.Apply(ctx, change)
		if guideway.ErrorCode(err) == guideway.CodeConflict && r.Kind != KindFragment {
			// The number of the record is already used, or another process has just added
			// the record.
			if _, err := s.o.Index.Checkpoint(ctx, r.ID); err == nil {
				continue
			}
			series, seriesErr := s.o.Index.Series(ctx, key)
			if seriesErr != nil {
				return adopted, seriesErr
			}
			r.Number = series.Last + 1
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

// termsOf returns the search terms of the readable checkpoints by id. A fragment has none.
func (s *Service) termsOf(ctx context.Context, list []Record) map[string][]string {
	found := map[string][]string{}
	s.eachContent(ctx, list, func(r Record, raw []byte, err error) {
		if err != nil {
			return
		}
		found[r.ID] = nil
		if r.Kind == KindFragment {
			return
		}
		if tree, err := decodeObject(raw); err == nil {
			// Without the key of the hashes, the checkpoint has no terms.
			found[r.ID], _ = s.searchTerms(ctx, r, contentTerms(tree, s.secrets.Scan(tree)))
		}
	})
	return found
}

// readBase reads the base of a checkpoint through the index.
func (s *Service) readBase(ctx context.Context, r Record) ([]byte, error) {
	base, err := s.o.Index.Checkpoint(ctx, r.Base)
	if guideway.ErrorCode(err) == guideway.CodeNotFound {
		return nil, damagedf("the checkpoint %s, which %s depends on, is missing", r.Base, r.ID)
	}
	if err != nil {
		return nil, err
	}
	return s.readRetrying(ctx, base)
}

// eachContent reads the checkpoints of a series, each once, the newest first, since older
// checkpoints depend on newer ones. Bases that are not in the list are read through the
// index.
func (s *Service) eachContent(ctx context.Context, list []Record, visit func(Record, []byte, error)) {
	const kept = 8 // several contents are cached, because a series may have branches
	contents := map[string][]byte{}
	var order []string
	for _, r := range slices.Backward(sortedByNumber(list)) {
		var base []byte
		var err error
		if r.Base != "" {
			var there bool
			if base, there = contents[r.Base]; !there {
				if slices.ContainsFunc(list, func(other Record) bool { return other.ID == r.Base }) {
					err = damagedf("the checkpoint %s, which %s depends on, cannot be read", r.Base, r.ID)
				} else {
					base, err = s.readBase(ctx, r)
				}
			}
		}
		var raw []byte
		if err == nil {
			raw, err = s.readOne(ctx, r, packedBlob{base: base, most: s.maxRawBytes()})
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
