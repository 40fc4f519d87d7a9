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

// maxFolds bounds how much one maintenance stores anew.
const maxFolds = 500

// Maintain does what is done at start-up, beside the answers: it takes up what
// the index lacks, sweeps what nobody needs, makes smaller what was left whole,
// and retires sessions without activity. It may take a while; the end of the
// context ends it at any point.
func (s *Service) Maintain(ctx context.Context) (Upkept, error) {
	var out Upkept
	if err := s.writable("maintain checkpoints"); err != nil {
		return out, err
	}
	if err := s.ready(ctx); err != nil {
		return out, err
	}
	s.compactIndex(ctx)
	s.holdReserve(ctx)
	v, err := s.survey(ctx, grace, false)
	if err != nil {
		return out, err
	}
	if out.Rebuilt, err = s.reconcile(ctx, v); err != nil {
		return out, err
	}
	if out.Swept, err = s.sweep(ctx); err != nil {
		return out, err
	}
	if out.Folded, err = s.compact(ctx); err != nil {
		return out, err
	}
	if out.Checked, out.Damaged, err = s.inspect(ctx); err != nil {
		return out, err
	}
	if s.o.Limits.Retention > 0 {
		out.Retired, err = s.retire(ctx, retirement{before: s.clock().Add(-s.o.Limits.Retention), why: "no activity"})
	}
	return out, err
}

// maxInspected bounds how many bytes of blobs one maintenance reads.
const maxInspected = 64 << 20

// inspect reads the checkpoints of the sessions that were touched last, and marks
// what is damaged. It ends where a key is missing: then nothing is known.
func (s *Service) inspect(ctx context.Context) (checked, damaged int, err error) {
	lines, err := s.o.Index.Lines(ctx, LineFilter{})
	if err != nil {
		return 0, 0, err
	}
	report := &Report{}
	left := int64(maxInspected)
	for _, line := range slices.Backward(lines) {
		if left -= line.Stored; left < 0 {
			break
		}
		list, err := s.o.Index.History(ctx, line.LineKey, History{})
		if err == nil {
			err = s.verifyLine(ctx, list, report)
		}
		if err != nil {
			s.o.Logger.WarnContext(ctx, "checkpoints could not be checked", "session", line.Session, "error", err)
			break
		}
	}
	if len(report.Damaged) > 0 {
		s.o.Logger.ErrorContext(ctx, "checkpoints are damaged; `guideway checkpoint verify` lists them", "damaged", len(report.Damaged))
	}
	return report.Checkpoints + report.Pieces, len(report.Damaged), nil
}

// Sweep removes blobs that no checkpoint has: what deletions and crashes have
// left. It first takes up what only the index has lost, so that nothing goes that
// could still be read.
func (s *Service) Sweep(ctx context.Context) (Sweeping, error) {
	if err := s.writable("sweep"); err != nil {
		return Sweeping{}, err
	}
	v, err := s.survey(ctx, grace, false)
	if err != nil {
		return Sweeping{}, err
	}
	if _, err := s.reconcile(ctx, v); err != nil {
		return Sweeping{}, err
	}
	return s.sweep(ctx)
}

// sweep removes blobs and data keys that nobody has. The caller has reconciled the
// index just before.
func (s *Service) sweep(ctx context.Context) (Sweeping, error) {
	var out Sweeping
	v, err := s.survey(ctx, grace, false)
	if err != nil {
		return out, err
	}
	deleted, err := s.deletedOf(ctx, v)
	if err != nil {
		return out, err
	}
	surplus := map[blob.Name]bool{}
	for id, forms := range v.strangers {
		known, there := v.records[id]
		_, fine := v.there[known.Blob]
		if deleted[id] || (there && fine) {
			for _, form := range forms {
				surplus[form.Blob] = true
			}
		}
	}
	// What does not say what it is may be of use to somebody who looks into what
	// went wrong, but not for ever.
	now := s.clock()
	for _, info := range v.garbled {
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

// sweepKeys destroys data keys that no checkpoint has.
func (s *Service) sweepKeys(ctx context.Context, v *survey) (swept int, err error) {
	names, err := seal.Names(ctx, s.o.Blobs)
	if err != nil || len(names) == 0 {
		return 0, err
	}
	used := map[string]bool{}
	for _, r := range v.records {
		used[r.Key] = true
	}
	for _, forms := range v.strangers {
		for _, r := range forms {
			used[r.Key] = true
		}
	}
	now := s.clock()
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

// compact makes smaller what is whole without need: after a crash, a full disk, an
// import or a rebuild.
func (s *Service) compact(ctx context.Context) (folds int, err error) {
	lines, err := s.o.Index.Lines(ctx, LineFilter{})
	if err != nil {
		return 0, err
	}
	for _, line := range lines {
		if ctx.Err() != nil || folds >= maxFolds {
			return folds, nil
		}
		n, err := s.compactLine(ctx, line.LineKey)
		folds += n
		if err != nil {
			return folds, err
		}
	}
	return folds, nil
}

func (s *Service) compactLine(ctx context.Context, key LineKey) (folds int, err error) {
	list, err := s.o.Index.History(ctx, key, History{Oldest: true})
	if err != nil {
		return 0, err
	}
	next := map[string]Record{} // the first successor of each
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
		done, err := s.refold(ctx, r, successor)
		if err != nil {
			return folds, err
		}
		if done {
			folds++
		}
	}
	return folds, nil
}

// refold stores one checkpoint as what differs from its successor.
func (s *Service) refold(ctx context.Context, r, successor Record) (bool, error) {
	raw, err := s.read(ctx, successor)
	if errors.Is(err, errDamaged) || guideway.ErrorCode(err) == guideway.CodeNotFound {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	f, err := s.foldInto(ctx, r, successor, raw)
	if errors.Is(err, errDamaged) || f == nil {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if _, err := s.o.Blobs.Put(ctx, f.blob); err != nil {
		return false, err
	}
	err = s.o.Index.Apply(ctx, Change{Line: r.LineKey, Swaps: []Swap{f.swap}})
	if guideway.ErrorCode(err) == guideway.CodeConflict {
		s.unlink(ctx, f.swap.New.Blob)
		return false, nil
	}
	if err != nil {
		return false, err
	}
	s.unlink(ctx, f.swap.Old)
	return true, nil
}

// Verify reads every checkpoint of every session. It marks what is damaged and
// unmarks what is not, but in read-only mode; CodeUnavailable where something
// cannot be read for another reason, such as a missing key.
func (s *Service) Verify(ctx context.Context) (*Report, error) {
	if err := s.unlocked("verify checkpoints"); err != nil {
		return nil, err
	}
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	out := &Report{Damaged: []Finding{}, Store: s.o.Store}
	lines := map[LineKey][]Record{}
	err := s.eachRecord(ctx, func(r Record) { lines[r.LineKey] = append(lines[r.LineKey], r) })
	if err != nil {
		return nil, err
	}
	for _, list := range lines {
		if err := s.verifyLine(ctx, list, out); err != nil {
			return nil, err
		}
	}
	v, err := s.survey(ctx, grace, false)
	if err != nil {
		return nil, err
	}
	for id := range v.strangers {
		if _, known := v.records[id]; !known {
			out.Unknown++
		}
	}
	return out, nil
}

func (s *Service) verifyLine(ctx context.Context, list []Record, out *Report) error {
	var unreadable error
	known := map[string]Record{}
	for _, r := range list {
		known[r.ID] = r
	}
	s.eachContent(ctx, list, known, func(r Record, raw []byte, err error) {
		if err != nil {
			// Slowly: it may have been stored anew meanwhile. This marks it, too.
			raw, err = s.contentNow(ctx, r.ID)
		} else if r.Problem != "" {
			out.Healed = append(out.Healed, r.ID)
			_, err = s.contentNow(ctx, r.ID)
		}
		switch {
		case guideway.ErrorCode(err) == guideway.CodeNotFound:
			return // deleted meanwhile
		case errors.Is(err, errDamaged):
			out.Damaged = append(out.Damaged, Finding{Checkpoint: r.ID, LineKey: r.LineKey, Problem: err.Error()})
		case err != nil:
			unreadable = err
		default:
			out.Bytes += int64(len(raw))
		}
		if r.Kind == KindPiece {
			out.Pieces++
		} else {
			out.Checkpoints++
		}
	})
	return errors.Join(unreadable, ctx.Err())
}

// contentNow reads a checkpoint as the index has it now.
func (s *Service) contentNow(ctx context.Context, id string) ([]byte, error) {
	rec, err := s.o.Index.Checkpoint(ctx, id)
	if err != nil {
		return nil, err
	}
	return s.content(ctx, rec)
}

// Stats gives figures about what is stored; an empty user is all users.
func (s *Service) Stats(ctx context.Context, user string) (*Stats, error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	out := &Stats{Limit: max(s.o.Limits.TotalBytes, 0), Sessions: []Line{}, Growth: []Day{}, Store: s.o.Store}
	lines, err := s.o.Index.Lines(ctx, LineFilter{User: user})
	if err != nil {
		return nil, err
	}
	for _, line := range lines {
		out.Lines++
		out.Count += line.Count
		out.Bytes += line.Bytes
		out.Stored += line.Stored
	}
	if len(lines) > 0 {
		out.Oldest, out.Newest = lines[0].Touched, lines[len(lines)-1].Touched
	}
	if out.Stored > 0 {
		out.Ratio = float64(out.Bytes) / float64(out.Stored)
	}
	out.Sessions = largest(lines, 20)
	out.Growth, err = s.growth(ctx, user)
	return out, err
}

// growth adds up what each of the last days has brought.
func (s *Service) growth(ctx context.Context, user string) ([]Day, error) {
	const days = 30
	f := Filter{User: user, Since: s.clock().Add(-days * 24 * time.Hour), Limit: pageSize}
	byDate := map[string]*Day{}
	for {
		list, err := s.o.Index.Checkpoints(ctx, f)
		if err != nil {
			return nil, err
		}
		for _, r := range list {
			date := r.Created.Format(time.DateOnly)
			if byDate[date] == nil {
				byDate[date] = &Day{Date: date}
			}
			byDate[date].Checkpoints++
			byDate[date].Bytes += r.Bytes
			byDate[date].Stored += r.Stored
		}
		if len(list) < pageSize {
			break
		}
		last := list[len(list)-1]
		f.Before = &Cursor{Pos: last.Pos, ID: last.ID}
	}
	return sortedDays(byDate), nil
}
