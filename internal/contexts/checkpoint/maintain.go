package checkpoint

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/blob"
	"github.com/guideway-dev/guideway/internal/contexts/blob/seal"
)

// maxFolds bounds the number of checkpoints that one maintenance stores again.
const maxFolds = 500

// Maintain runs in the background after a start: it adds checkpoints missing from the
// index, sweeps unused blobs and data keys, compacts whole checkpoints, checks the
// checkpoints of recently used sessions, and removes inactive sessions. It may take a
// while; canceling the context stops it at any point.
func (s *Service) Maintain(ctx context.Context) (Maintained, error) {
	var out Maintained
	if err := s.prepareChange(ctx, "maintain checkpoints"); err != nil {
		return out, err
	}
	s.compactIndex(ctx)
	s.holdReserve(ctx)
	// The sweep removes an unused blob that is old by the service's clock, so the new blobs of
	// folds have to be in use.
	s.FinishFolds()
	v, err := s.surveyBlobs(ctx, grace, false)
	if err != nil {
		return out, err
	}
	if out.Rebuilt, err = s.reconcileIndex(ctx, v); err != nil {
		return out, err
	}
	if out.Swept, err = s.sweepUnused(ctx); err != nil {
		return out, err
	}
	if out.Folded, err = s.compactWhole(ctx); err != nil {
		return out, err
	}
	if out.Checked, out.Damaged, err = s.inspectRecent(ctx); err != nil {
		return out, err
	}
	if s.o.Limits.Retention > 0 {
		out.Retired, err = s.retireSessions(ctx, retirement{before: s.currentTime().Add(-s.o.Limits.Retention), why: "no activity"})
	}
	return out, err
}

// maxInspected bounds the bytes of blobs that one maintenance reads.
const maxInspected = 64 << 20

// inspectRecent reads the checkpoints of the most recently touched sessions and marks
// damaged ones. It stops if a checkpoint cannot be read for another reason, such as a
// missing key.
func (s *Service) inspectRecent(ctx context.Context) (checked, damaged int, err error) {
	seriesList, err := s.o.Index.ListSeries(ctx, SeriesFilter{})
	if err != nil {
		return 0, 0, err
	}
	report := &Report{}
	left := int64(maxInspected)
	for _, series := range slices.Backward(seriesList) {
		if left -= series.Stored; left < 0 {
			break
		}
		list, err := s.o.Index.History(ctx, series.SeriesKey, History{})
		if err == nil {
			err = s.verifyLine(ctx, list, report)
		}
		if err != nil {
			s.o.Logger.WarnContext(ctx, "checkpoints could not be checked", "session", series.Session, "error", err)
			break
		}
	}
	if len(report.Damaged) > 0 {
		s.o.Logger.ErrorContext(ctx, "checkpoints are damaged; `guideway checkpoint verify` lists them", "damaged", len(report.Damaged))
	}
	return report.Checkpoints + report.Fragments, len(report.Damaged), nil
}

// sweepUnused removes unused blobs and data keys. The caller must have reconciled the index just
// before.
func (s *Service) sweepUnused(ctx context.Context) (Swept, error) {
	var out Swept
	v, err := s.surveyBlobs(ctx, grace, false)
	if err != nil {
		return out, err
	}
	deleted, err := s.deletedOf(ctx, v)
	if err != nil {
		return out, err
	}
	surplus := map[blob.Name]bool{}
	for id, forms := range v.orphans {
		known, there := v.records[id]
		_, fine := v.existing[known.Blob]
		if deleted[id] || (there && fine) {
			for _, form := range forms {
				surplus[form.Blob] = true
			}
		}
	}
	// Blobs without a readable header are kept for a while, since they may help to find the
	// cause.
	now := s.currentTime()
	for _, info := range v.unreadable {
		if s.o.Limits.Retention > 0 && now.Sub(info.Modified) > s.o.Limits.Retention {
			surplus[info.Name] = true
		}
	}
	swept, err := s.o.Blobs.Sweep(ctx, func(info blob.Info) bool { return !surplus[info.Name] })
	out.Blobs, out.Bytes, out.Leftovers = swept.Blobs, swept.Bytes, swept.Leftovers
	if err != nil {
		return out, err
	}
	out.Keys, err = s.sweepKeys(ctx, v)
	return out, err
}

// sweepKeys destroys unused data keys.
func (s *Service) sweepKeys(ctx context.Context, v *surveyResult) (swept int, err error) {
	names, err := seal.Names(ctx, s.o.Blobs)
	if err != nil || len(names) == 0 {
		return 0, err
	}
	used := map[string]bool{}
	for _, r := range v.records {
		used[r.Key] = true
	}
	for _, forms := range v.orphans {
		for _, r := range forms {
			used[r.Key] = true
		}
	}
	now := s.currentTime()
	for _, slot := range names {
		if used[slot.Key] || now.Sub(slot.Modified) < grace {
			continue
		}
		if err := seal.Erase(ctx, s.o.Blobs, slot.Key); err != nil {
			return swept, err
		}
		swept++
	}
	return swept, nil
}

// compactWhole stores checkpoints as deltas that are stored whole because of a crash, a
// full disk, an import or a rebuild.
func (s *Service) compactWhole(ctx context.Context) (folds int, err error) {
	seriesList, err := s.o.Index.ListSeries(ctx, SeriesFilter{})
	if err != nil {
		return 0, err
	}
	for _, series := range seriesList {
		if ctx.Err() != nil || folds >= maxFolds {
			return folds, nil
		}
		n, err := s.compactLine(ctx, series.SeriesKey)
		folds += n
		if err != nil {
			return folds, err
		}
	}
	return folds, nil
}

func (s *Service) compactLine(ctx context.Context, key SeriesKey) (folds int, err error) {
	list, err := s.o.Index.History(ctx, key, History{Oldest: true})
	if err != nil {
		return 0, err
	}
	next := map[string]Record{} // next maps each checkpoint to its first successor
	for _, r := range list {
		if _, there := next[r.Parent]; !there && r.Parent != "" {
			next[r.Parent] = r
		}
	}
	for _, r := range list {
		successor, there := next[r.ID]
		if !there || r.Base != "" || r.Problem != "" || successor.Problem != "" || successor.Number <= r.Number || ctx.Err() != nil {
			continue
		}
		n, err := s.storeFolds(ctx, []fold{{r, successor}})
		if folds += n; err != nil {
			return folds, err
		}
	}
	return folds, nil
}

// Verify reads every checkpoint of every session. Unless the service is read-only, it marks
// damaged checkpoints and unmarks readable ones. It returns CodeUnavailable if a checkpoint
// cannot be read for another reason, such as a missing key.
func (s *Service) Verify(ctx context.Context) (*Report, error) {
	if err := s.prepareRead(ctx, "verify checkpoints"); err != nil {
		return nil, err
	}
	out := &Report{Damaged: []Finding{}, Store: s.o.Store}
	seriesList := map[SeriesKey][]Record{}
	err := s.eachRecord(ctx, Filter{All: true}, func(r Record) { seriesList[r.SeriesKey] = append(seriesList[r.SeriesKey], r) })
	if err != nil {
		return nil, err
	}
	for _, list := range seriesList {
		if err := s.verifyLine(ctx, list, out); err != nil {
			return nil, err
		}
	}
	v, err := s.surveyBlobs(ctx, grace, false)
	if err != nil {
		return nil, err
	}
	for id := range v.orphans {
		if _, known := v.records[id]; !known {
			out.Unknown++
		}
	}
	return out, nil
}

func (s *Service) verifyLine(ctx context.Context, list []Record, out *Report) error {
	var unreadable error
	s.eachContent(ctx, list, func(r Record, raw []byte, err error) {
		if err != nil {
			// Retry with the current record, since the checkpoint may have been stored
			// again. The retry also marks a damaged checkpoint.
			raw, err = s.contentNow(ctx, r.ID)
		} else if r.Problem != "" {
			out.Healed = append(out.Healed, r.ID)
			_, err = s.contentNow(ctx, r.ID)
		}
		switch {
		case guideway.ErrorCode(err) == guideway.CodeNotFound:
			return // the checkpoint was deleted during the check
		case errors.Is(err, errDamaged):
			out.Damaged = append(out.Damaged, Finding{Checkpoint: r.ID, SeriesKey: r.SeriesKey, Problem: err.Error()})
		case err != nil:
			unreadable = err
		default:
			out.Bytes += int64(len(raw))
		}
		if r.Kind == KindFragment {
			out.Fragments++
		} else {
			out.Checkpoints++
		}
	})
	return errors.Join(unreadable, ctx.Err())
}

// contentNow reads a checkpoint with its current record.
func (s *Service) contentNow(ctx context.Context, id string) ([]byte, error) {
	rec, err := s.o.Index.Checkpoint(ctx, id)
	if err != nil {
		return nil, err
	}
	return s.readContent(ctx, rec)
}

// Stats returns statistics of the store; an empty user means all users.
func (s *Service) Stats(ctx context.Context, user string) (*Stats, error) {
	if err := s.ensureIndex(ctx); err != nil {
		return nil, err
	}
	out := &Stats{Limit: max(s.o.Limits.TotalBytes, 0), Sessions: []Series{}, Growth: []Day{}, Store: s.o.Store}
	seriesList, err := s.o.Index.ListSeries(ctx, SeriesFilter{User: user})
	if err != nil {
		return nil, err
	}
	for _, series := range seriesList {
		out.Series++
		out.Count += series.Count
		out.Bytes += series.Bytes
		out.Stored += series.Stored
	}
	if len(seriesList) > 0 {
		out.Oldest, out.Newest = seriesList[0].Touched, seriesList[len(seriesList)-1].Touched
	}
	if out.Stored > 0 {
		out.Ratio = float64(out.Bytes) / float64(out.Stored)
	}
	out.Sessions = largestSeries(seriesList, 20)
	out.Growth, err = s.dailyGrowth(ctx, user)
	return out, err
}

// dailyGrowth returns the growth of the last days.
func (s *Service) dailyGrowth(ctx context.Context, user string) ([]Day, error) {
	const days = 30
	byDate := map[string]*Day{}
	f := Filter{User: user, Since: s.currentTime().Add(-days * 24 * time.Hour)}
	err := s.eachRecord(ctx, f, func(r Record) {
		date := r.Created.Format(time.DateOnly)
		if byDate[date] == nil {
			byDate[date] = &Day{Date: date}
		}
		byDate[date].Checkpoints++
		byDate[date].Bytes += r.Bytes
		byDate[date].Stored += r.Stored
	})
	return sortedDays(byDate), err
}
