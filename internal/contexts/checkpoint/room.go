package checkpoint

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/blob"
	"github.com/guideway-dev/guideway/internal/contexts/blob/seal"
)

// room is what a save makes room by.
type room struct {
	// oldest are the checkpoints of the line that go with it.
	oldest   []Record
	warnings []Warning
}

func (r *room) ids() []string {
	var ids []string
	for _, one := range r.oldest {
		ids = append(ids, one.ID)
	}
	return ids
}

// room sees to the limits for so many more bytes in a line. CodeUnavailable where
// there is no room even after the longest untouched sessions have gone.
func (s *Service) room(ctx context.Context, key LineKey, line Line, more int64) (*room, error) {
	rm, err := s.roomInLine(ctx, key, line, more)
	if err != nil || s.o.Limits.TotalBytes <= 0 {
		return rm, err
	}
	most := s.o.Limits.TotalBytes
	used, matters, err := s.usedWith(ctx, more)
	if err != nil || !matters {
		return rm, err
	}
	freed := int64(0)
	for _, r := range rm.oldest {
		freed += r.Stored
	}
	used -= freed
	if used > part(most, s.o.Limits.Clean) {
		cleaned, err := s.retire(ctx, retirement{keep: key, bounded: true, until: part(most, s.o.Limits.Warn) - more + freed, why: "the limit of all sessions"})
		if err != nil {
			return nil, err
		}
		used -= cleaned.Stored
		if cleaned.Sessions > 0 {
			rm.warnings = append(rm.warnings, Warning{Code: WarnCleaned, Message: fmt.Sprintf(
				"%d sessions that were longest untouched are gone: checkpoints took more than %.0f%% of %s", cleaned.Sessions, 100*s.o.Limits.Clean, size(most))})
		}
	}
	switch {
	case used > most:
		return nil, guideway.Errorf(guideway.CodeUnavailable, "all checkpoints together would take %s, the limit is %s", size(used), size(most)).
			WithFix("delete sessions with `guideway cleanup`, or raise the limit; nothing was saved")
	case used > part(most, s.o.Limits.Warn):
		rm.warnings = append(rm.warnings, Warning{Code: WarnTotal, Message: fmt.Sprintf("all checkpoints together take %s of %s", size(used), size(most))})
	}
	return rm, nil
}

// part is a part of a limit; all of it where the part makes no sense.
func part(limit int64, of float64) int64 {
	if of <= 0 || of > 1 {
		return limit
	}
	return int64(float64(limit) * of)
}

// size writes a number of bytes for people.
func size(n int64) string {
	units := []string{"bytes", "KiB", "MiB", "GiB", "TiB"}
	value, unit := float64(n), 0
	for value >= 1024 && unit < len(units)-1 {
		value /= 1024
		unit++
	}
	if unit == 0 {
		return fmt.Sprintf("%d %s", n, units[0])
	}
	return fmt.Sprintf("%.1f %s", value, units[unit])
}

// roomInLine chooses the oldest checkpoints of a line to go where it is full.
func (s *Service) roomInLine(ctx context.Context, key LineKey, line Line, more int64) (*room, error) {
	rm, l := &room{}, s.o.Limits
	tooMany := 0
	if l.PerLine > 0 {
		tooMany = max(line.Count+1-l.PerLine, 0)
		if left := line.Count + 1 - tooMany; left >= int(part(int64(l.PerLine), l.Warn)) {
			rm.warnings = append(rm.warnings, Warning{Code: WarnLine, Message: fmt.Sprintf(
				"the session has %d of %d checkpoints; where it has all of them, the oldest goes with each save", left, l.PerLine)})
		}
	}
	over := int64(0)
	if l.LineBytes > 0 {
		over = max(line.Stored+more-l.LineBytes, 0)
		if over == 0 && line.Stored+more >= part(l.LineBytes, l.Warn) {
			rm.warnings = append(rm.warnings, Warning{Code: WarnLine, Message: fmt.Sprintf(
				"the session takes %s of %s; where there is no more room, the oldest checkpoint goes with each save", size(line.Stored+more), size(l.LineBytes))})
		}
	}
	if tooMany == 0 && over == 0 {
		return rm, nil
	}
	history := History{Oldest: true}
	if over == 0 {
		history.Limit = tooMany
	}
	list, err := s.o.Index.History(ctx, key, history)
	if err != nil {
		return nil, err
	}
	for _, r := range list {
		if len(rm.oldest) >= tooMany && over <= 0 {
			break
		}
		rm.oldest = append(rm.oldest, r)
		over -= r.Stored
	}
	if over > 0 {
		return nil, tooLarge("the session with this checkpoint", line.Stored+more, l.LineBytes)
	}
	return rm, nil
}

// reserver has room set aside that can be given up: taking something out of an
// index takes room, too.
type reserver interface {
	// HoldReserve sets the room aside, ReleaseReserve gives it up.
	HoldReserve() error
	ReleaseReserve() error
}

// compacter is an index that can give back room without losing anything, such as
// that of a log.
type compacter interface {
	Compact(ctx context.Context) error
}

// emergency makes room on a full disk. It says how many sessions are gone for it,
// the longest untouched first, until a tenth of all, or enough for a few saves, is
// free; and whether there may be room now.
func (s *Service) emergency(ctx context.Context, keep LineKey) (gone int, again bool) {
	const fewest = 512 << 10
	if r, ok := s.o.Blobs.(reserver); ok {
		if err := r.ReleaseReserve(); err != nil {
			s.o.Logger.WarnContext(ctx, "the reserve could not be given up", "error", err)
		}
		defer s.holdReserve(ctx)
	}
	again = s.compactIndex(ctx)
	totals, err := s.o.Index.Totals(ctx)
	if err != nil {
		return 0, again
	}
	cleaned, err := s.retire(ctx, retirement{keep: keep, bounded: true, until: totals.Stored - max(totals.Stored/10, fewest), why: "the disk is full"})
	if err != nil {
		s.o.Logger.ErrorContext(ctx, "the disk is full and no more room could be made", "error", err)
	}
	if cleaned.Checkpoints == 0 {
		return 0, again
	}
	s.compactIndex(ctx)
	s.o.Logger.ErrorContext(ctx, "the disk is full: the sessions that were longest untouched are gone",
		"sessions", cleaned.Sessions, "checkpoints", cleaned.Checkpoints, "bytes", cleaned.Stored)
	return max(cleaned.Sessions, 1), true
}

// holdReserve sets room aside. Where there is none for it yet, the next save that
// goes well tries again.
func (s *Service) holdReserve(ctx context.Context) {
	r, ok := s.o.Blobs.(reserver)
	if !ok {
		return
	}
	err := r.HoldReserve()
	s.reserveOut.Store(err != nil)
	if err != nil && !blob.IsFull(err) {
		s.o.Logger.WarnContext(ctx, "no room could be set aside for a full disk", "error", err)
	}
}

func (s *Service) compactIndex(ctx context.Context) bool {
	x, ok := s.o.Index.(compacter)
	if !ok {
		return false
	}
	err := x.Compact(ctx)
	if err != nil {
		s.o.Logger.WarnContext(ctx, "the index of checkpoints could not be made smaller", "error", err)
	}
	return err == nil
}

// retirement says which sessions go.
type retirement struct {
	// keep is one that stays.
	keep LineKey
	// user, if set, is whose sessions may go.
	user string
	// before, if set, is the last activity of those that go.
	before time.Time
	// until is how much may be left, where it is bounded by that.
	until   int64
	bounded bool
	// last is how many checkpoints of each stay.
	last   int
	dryRun bool
	why    string
}

// retire removes sessions, the longest untouched first. Of one whose run is active
// the last checkpoint stays.
func (s *Service) retire(ctx context.Context, r retirement) (Cleaned, error) {
	out := Cleaned{DryRun: r.dryRun}
	lines, err := s.o.Index.Lines(ctx, LineFilter{User: r.user, Before: r.before})
	if err != nil {
		return out, err
	}
	left := int64(0)
	if r.bounded {
		totals, err := s.o.Index.Totals(ctx)
		if err != nil {
			return out, err
		}
		left = totals.Stored
	}
	for _, line := range lines {
		if ctx.Err() != nil || (r.bounded && left-out.Stored <= r.until) {
			break
		}
		if line.LineKey == r.keep {
			continue
		}
		if err := s.retireLine(ctx, line, r, &out); err != nil {
			return out, err
		}
	}
	return out, ctx.Err()
}

// retireLine removes one session, or all but its last checkpoints.
func (s *Service) retireLine(ctx context.Context, line Line, r retirement, out *Cleaned) error {
	last := r.last
	if last == 0 && s.active(ctx, line) {
		last = 1
		out.Kept++
	}
	history, err := s.o.Index.History(ctx, line.LineKey, History{})
	if err != nil || (last > 0 && len(history) <= last) {
		return err
	}
	gone := history[min(last, len(history)):]
	if last == 0 {
		pieces, err := s.pieces(ctx, line.LineKey)
		if err != nil {
			return err
		}
		gone = append(gone, pieces...)
	}
	if !r.dryRun && len(gone) > 0 {
		err := s.remove(ctx, line.LineKey, gone, Entry{Action: ActionDelete, Client: "guideway", Detail: r.why})
		if guideway.ErrorCode(err) == guideway.CodeConflict {
			return nil // somebody works with it: it is not untouched any more
		}
		if err != nil {
			return err
		}
	}
	if last == 0 {
		out.Sessions++
	}
	for _, one := range gone {
		if one.Kind != KindPiece {
			out.Checkpoints++
		}
		out.Stored += one.Stored
	}
	return nil
}

func (s *Service) pieces(ctx context.Context, key LineKey) ([]Record, error) {
	return s.o.Index.Checkpoints(ctx, Filter{User: key.User, Session: key.Session, Pieces: true, Limit: everything})
}

// everything is a limit that nothing reaches.
const everything = 1 << 30

// active says whether a line's run is under way. What cannot be found out counts
// as active.
func (s *Service) active(ctx context.Context, line Line) bool {
	if line.Run == "" || s.o.Active == nil {
		return false
	}
	is, err := s.o.Active(ctx, line.Run)
	return is || err != nil
}

// remove takes records of a line out of the index, then their data keys, then
// their blobs. None that stays may depend on them.
func (s *Service) remove(ctx context.Context, key LineKey, gone []Record, e Entry) error {
	change := Change{Line: key, At: s.clock()}
	var names []blob.Name
	keys := map[string]bool{}
	for _, r := range gone {
		change.Remove = append(change.Remove, r.ID)
		names = append(names, r.Blob)
		if r.Key != "" {
			keys[r.Key] = true
		}
		e.At, e.LineKey, e.Checkpoint = change.At, key, r.ID
		change.Audit = append(change.Audit, e)
	}
	if err := s.o.Index.Apply(ctx, change); err != nil {
		return err
	}
	if _, err := s.eraseUnused(ctx, key, keys); err != nil {
		s.o.Logger.WarnContext(ctx, "a data key could not be destroyed yet", "session", key.Session, "error", err)
	}
	s.unlink(ctx, names...)
	return nil
}

// eraseUnused destroys those of some data keys that no checkpoint of the line has
// any more, and says whether it destroyed all of them. No save can take one up
// again: it would have had to see a checkpoint that has it, and would find the
// line changed.
func (s *Service) eraseUnused(ctx context.Context, key LineKey, names map[string]bool) (all bool, err error) {
	all = len(names) > 0
	for name := range names {
		list, err := s.o.Index.Checkpoints(ctx, Filter{User: key.User, Session: key.Session, Key: name, All: true, Limit: 1})
		if err != nil {
			return false, err
		}
		if len(list) > 0 {
			all = false
			continue
		}
		if err := seal.Erase(ctx, s.o.Blobs, name); err != nil {
			return false, err
		}
	}
	return all, nil
}

// Cleanup removes what a person no longer wants: of the sessions without activity
// for so long, all but the last checkpoints. Of an active run's the last one
// stays.
func (s *Service) Cleanup(ctx context.Context, r CleanupRequest) (Cleaned, error) {
	if err := s.writable("clean up"); err != nil && !r.DryRun {
		return Cleaned{}, err
	}
	if r.OlderThan < 0 || r.KeepLast < 0 || (r.OlderThan == 0 && r.KeepLast == 0) {
		return Cleaned{}, guideway.Errorf(guideway.CodeInvalid, "it is not said what may go").
			WithFix("give --older-than, such as 7d, or --keep-last, or both")
	}
	if err := s.ready(ctx); err != nil {
		return Cleaned{}, err
	}
	do := retirement{user: r.User, last: r.KeepLast, dryRun: r.DryRun, why: "cleanup"}
	if r.OlderThan > 0 {
		do.before = s.clock().Add(-r.OlderThan)
	}
	return s.retire(ctx, do)
}

// sortedByNumber has the oldest first.
func sortedByNumber(list []Record) []Record {
	return slices.SortedFunc(slices.Values(list), func(a, b Record) int { return int(a.Number - b.Number) })
}
