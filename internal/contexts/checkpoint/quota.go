package checkpoint

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/blob"
	"github.com/guideway-dev/guideway/internal/contexts/blob/seal"
)

// quotaPlan has the removals that make room for a save, and the warnings about the limits.
type quotaPlan struct {
	// oldest are the oldest checkpoints of the series, to be removed with the save.
	oldest   []Record
	warnings []Warning
}

// makeRoom enforces the limits for a save of more bytes. It returns CodeTooLarge if the
// save exceeds the limit of the session, and CodeUnavailable if there is no room even after
// the least recently touched sessions were removed.
func (s *Service) makeRoom(ctx context.Context, key SeriesKey, series Series, more int64) (*quotaPlan, error) {
	rm, err := s.makeRoomInSeries(ctx, key, series, more)
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
	var cleaned Cleaned
	if used > fractionOf(most, s.o.Limits.Clean) {
		cleaned, err = s.retireSessions(ctx, retirement{keep: key, bounded: true, until: fractionOf(most, s.o.Limits.Warn) - more + freed, why: "the limit of all sessions"})
		if err != nil {
			return nil, err
		}
		used -= cleaned.Stored
		if cleaned.Sessions > 0 {
			rm.warnings = append(rm.warnings, Warning{Code: WarnCleaned, Message: fmt.Sprintf(
				"the checkpoints of the least recently used sessions were deleted (sessions: %d; guideway checkpoint log lists them), because all checkpoints together took more than %.0f%% of the limit of %s", cleaned.Sessions, 100*s.o.Limits.Clean, formatBytes(most))})
		}
	}
	switch {
	case used > most:
		return nil, guideway.Errorf(guideway.CodeUnavailable, "all checkpoints together would take %s, above the limit of %s; nothing was saved (sessions deleted to make room: %d)",
			formatBytes(used), formatBytes(most), cleaned.Sessions).WithFix("delete checkpoints with `guideway cleanup --older-than 7d`, or raise checkpoints.maxTotal")
	case used > fractionOf(most, s.o.Limits.Warn):
		rm.warnings = append(rm.warnings, Warning{Code: WarnTotal, Message: fmt.Sprintf(
			"all checkpoints together take %s of the limit of %s; above %.0f%% of it the least recently used sessions are deleted", formatBytes(used), formatBytes(most), 100*s.o.Limits.Clean)})
	}
	return rm, nil
}

// fractionOf returns a fraction of a limit; the whole limit if the fraction is invalid.
func fractionOf(limit int64, of float64) int64 {
	if of <= 0 || of > 1 {
		return limit
	}
	return int64(float64(limit) * of)
}

// formatBytes formats a number of bytes for people.
func formatBytes(n int64) string {
	units := []string{"bytes", "KiB", "MiB", "GiB", "TiB"}
	value, unit := float64(n), 0
	for value >= 1024 && unit < len(units)-1 {
		value /= 1024
		unit++
	}
	if n == 1 {
		return "1 byte"
	}
	if unit == 0 {
		return fmt.Sprintf("%d %s", n, units[0])
	}
	return fmt.Sprintf("%.1f %s", value, units[unit])
}

// makeRoomInSeries selects the oldest checkpoints of a full series for removal.
func (s *Service) makeRoomInSeries(ctx context.Context, key SeriesKey, series Series, more int64) (*quotaPlan, error) {
	rm, l := &quotaPlan{}, s.o.Limits
	tooMany := 0
	if l.PerSeries > 0 {
		tooMany = max(series.Count+1-l.PerSeries, 0)
		if left := series.Count + 1 - tooMany; left >= int(fractionOf(int64(l.PerSeries), l.Warn)) {
			rm.warnings = append(rm.warnings, Warning{Code: WarnLine, Message: fmt.Sprintf(
				"the session has %d of %d checkpoints; at the limit each save removes the oldest checkpoint", left, l.PerSeries)})
		}
	}
	over := int64(0)
	if l.SeriesBytes > 0 {
		over = max(series.Stored+more-l.SeriesBytes, 0)
		if over == 0 && series.Stored+more >= fractionOf(l.SeriesBytes, l.Warn) {
			rm.warnings = append(rm.warnings, Warning{Code: WarnLine, Message: fmt.Sprintf(
				"the session takes %s of %s; at the limit each save removes the oldest checkpoint", formatBytes(series.Stored+more), formatBytes(l.SeriesBytes))})
		}
	}
	if tooMany == 0 && over == 0 {
		return rm, nil
	}
	s.FinishFolds() // the blobs of the oldest checkpoints must not change until they are removed
	history := History{Oldest: true}
	if over == 0 {
		history.Limit = tooMany
	}
	list, err := s.o.Index.History(ctx, key, history)
	if err != nil {
		return nil, err
	}
	tooLarge := over > 0
	for _, r := range list {
		if len(rm.oldest) >= tooMany && over <= 0 {
			break
		}
		rm.oldest = append(rm.oldest, r)
		over -= r.Stored
	}
	if over > 0 {
		return nil, guideway.Errorf(guideway.CodeTooLarge, "this checkpoint and the omitted parts of the session take %d bytes, above the limit of a session, %d bytes", l.SeriesBytes+over, l.SeriesBytes).
			WithFix("compress the context with workflow_context_compress, save to another session, or raise checkpoints.maxSession")
	}
	if tooLarge {
		rm.warnings = append(rm.warnings, Warning{Code: WarnLine, Message: fmt.Sprintf(
			"the session has reached its limit of %s, so its oldest checkpoints were deleted (checkpoints: %d)", formatBytes(l.SeriesBytes), len(rm.oldest))})
	}
	return rm, nil
}

// reserver reserves disk space that can be released, since removing records from an index
// needs space too.
type reserver interface {
	// HoldReserve reserves the space, ReleaseReserve releases it.
	HoldReserve() error
	ReleaseReserve() error
}

// compacter is an index that can free space without data loss, for example the space of a
// log, or overwrite what was deleted.
type compacter interface {
	Compact(ctx context.Context) error
}

// freeFullDisk makes room on a full disk. It removes the least recently touched sessions
// until a tenth of the stored bytes, and at least enough for a few saves, is free. It
// returns the number of removed sessions, and whether a retry may succeed.
func (s *Service) freeFullDisk(ctx context.Context, keep SeriesKey) (gone int, again bool) {
	const fewest = 512 << 10
	if r, ok := s.o.Blobs.(reserver); ok {
		if err := r.ReleaseReserve(); err != nil {
			s.o.Logger.WarnContext(ctx, "the reserved disk space could not be released", "error", err)
		}
		defer s.holdReserve(ctx)
	}
	again = s.compactIndex(ctx)
	totals, err := s.o.Index.Totals(ctx)
	if err != nil {
		return 0, again
	}
	cleaned, err := s.retireSessions(ctx, retirement{keep: keep, bounded: true, until: totals.Stored - max(totals.Stored/10, fewest), why: "the disk is full"})
	if err != nil {
		s.o.Logger.ErrorContext(ctx, "the disk is full and no more space could be freed", "error", err)
	}
	if cleaned.Checkpoints == 0 {
		return 0, again
	}
	s.compactIndex(ctx)
	s.o.Logger.ErrorContext(ctx, "the disk is full: the checkpoints of the least recently used sessions were deleted",
		"sessions", cleaned.Sessions, "checkpoints", cleaned.Checkpoints, "bytes", cleaned.Stored)
	return max(cleaned.Sessions, 1), true
}

// holdReserve reserves disk space. If there is not enough space yet, the next successful
// save tries again.
func (s *Service) holdReserve(ctx context.Context) {
	r, ok := s.o.Blobs.(reserver)
	if !ok {
		return
	}
	err := r.HoldReserve()
	s.reserveOut.Store(err != nil)
	if err != nil && !blob.IsFull(err) {
		s.o.Logger.WarnContext(ctx, "cannot reserve the disk space that deletions need on a full disk", "error", err)
	}
}

func (s *Service) compactIndex(ctx context.Context) bool {
	x, ok := s.o.Index.(compacter)
	if !ok {
		return false
	}
	err := x.Compact(ctx)
	if err != nil {
		s.o.Logger.WarnContext(ctx, "the checkpoint index could not be compacted", "error", err)
	}
	return err == nil
}

// retirement selects the sessions to remove.
type retirement struct {
	// keep is a session that is not removed.
	keep SeriesKey
	// user restricts the removal to one user if set.
	user string
	// before selects sessions last touched before that time, if set.
	before time.Time
	// until is the total size at which the removal stops, if bounded.
	until   int64
	bounded bool
	// last is the number of checkpoints to keep per session.
	last   int
	dryRun bool
	why    string
}

// retireSessions removes sessions, the least recently touched first. It keeps the last checkpoint
// of an active run.
func (s *Service) retireSessions(ctx context.Context, r retirement) (Cleaned, error) {
	s.FinishFolds()
	out := Cleaned{DryRun: r.dryRun}
	seriesList, err := s.o.Index.ListSeries(ctx, SeriesFilter{User: r.user, Before: r.before})
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
	for _, series := range seriesList {
		if ctx.Err() != nil || (r.bounded && left-out.Stored <= r.until) {
			break
		}
		if series.SeriesKey == r.keep {
			continue
		}
		if err := s.retireSession(ctx, series, r, &out); err != nil {
			return out, err
		}
	}
	return out, ctx.Err()
}

// retireSession removes one session, or all its checkpoints but the last ones.
func (s *Service) retireSession(ctx context.Context, series Series, r retirement, out *Cleaned) error {
	last := r.last
	if last == 0 && s.isActive(ctx, series) {
		last = 1
		out.Kept++
	}
	history, err := s.o.Index.History(ctx, series.SeriesKey, History{})
	if err != nil || (last > 0 && len(history) <= last) {
		return err
	}
	gone := history[min(last, len(history)):]
	if last == 0 {
		fragments, err := s.listFragments(ctx, series.SeriesKey)
		if err != nil {
			return err
		}
		gone = append(gone, fragments...)
	}
	if !r.dryRun && len(gone) > 0 {
		err := s.removeRecords(ctx, series.SeriesKey, gone, Entry{Action: ActionDelete, Client: "guideway", Detail: r.why})
		if guideway.ErrorCode(err) == guideway.CodeConflict {
			return nil // the session is in use
		}
		if err != nil {
			return err
		}
	}
	if last == 0 {
		out.Sessions++
	}
	for _, one := range gone {
		if one.Kind != KindFragment {
			out.Checkpoints++
		}
		out.Stored += one.Stored
	}
	return nil
}

func (s *Service) listFragments(ctx context.Context, key SeriesKey) ([]Record, error) {
	return s.o.Index.Checkpoints(ctx, Filter{User: key.User, Session: key.Session, Fragments: true, Limit: unlimited})
}

// unlimited is a limit that is never reached.
const unlimited = 1 << 30

// isActive reports whether the run of a series is active, or may be active because its
// state cannot be determined.
func (s *Service) isActive(ctx context.Context, series Series) bool {
	if series.Run == "" || s.o.Active == nil {
		return false
	}
	is, err := s.o.Active(ctx, series.Run)
	return is || err != nil
}

// removeRecords removes records of a series from the index, then their data keys, then their
// blobs. No remaining record may depend on them.
func (s *Service) removeRecords(ctx context.Context, key SeriesKey, gone []Record, e Entry) error {
	change := Change{Series: key, At: s.currentTime()}
	var names []blob.Name
	keys := map[string]bool{}
	for _, r := range gone {
		change.Remove = append(change.Remove, Removal{r.ID, r.Blob})
		names = append(names, r.Blob)
		if r.Key != "" {
			keys[r.Key] = true
		}
		e.At, e.SeriesKey, e.Checkpoint = change.At, key, r.ID
		change.Audit = append(change.Audit, e)
	}
	if err := s.o.Index.Apply(ctx, change); err != nil {
		return err
	}
	if _, err := s.eraseUnused(ctx, key, keys); err != nil {
		s.o.Logger.WarnContext(ctx, "a data key could not be destroyed yet", "session", key.Session, "error", err)
	}
	s.unlinkBlobs(ctx, names...)
	return nil
}

// eraseUnused destroys the given data keys that no checkpoint of the series uses any more,
// and reports whether it destroyed all of them. No concurrent save can use such a key: it
// would depend on a removed checkpoint, and its change would conflict.
func (s *Service) eraseUnused(ctx context.Context, key SeriesKey, names map[string]bool) (all bool, err error) {
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

// Cleanup removes the checkpoints of the selected sessions, except the last KeepLast of
// each. It keeps the last checkpoint of an active run.
func (s *Service) Cleanup(ctx context.Context, r CleanupRequest) (Cleaned, error) {
	if err := s.requireWritable("clean up"); err != nil && !r.DryRun {
		return Cleaned{}, err
	}
	if r.OlderThan < 0 || r.KeepLast < 0 {
		return Cleaned{}, guideway.Errorf(guideway.CodeInvalid, "the age is %s and the number of checkpoints to keep is %d; neither may be negative", r.OlderThan, r.KeepLast).WithFix("use values of 0 or more")
	}
	if r.OlderThan == 0 && r.KeepLast == 0 {
		return Cleaned{}, guideway.Errorf(guideway.CodeInvalid, "neither an age nor a number of checkpoints to keep is given").
			WithFix("use --older-than, such as 7d, or --keep-last, or both")
	}
	if err := s.ensureIndex(ctx); err != nil {
		return Cleaned{}, err
	}
	do := retirement{user: r.User, last: r.KeepLast, dryRun: r.DryRun, why: "cleanup"}
	if r.OlderThan > 0 {
		do.before = s.currentTime().Add(-r.OlderThan)
	}
	cleaned, err := s.retireSessions(ctx, do)
	if cleaned.Checkpoints > 0 && !do.dryRun {
		s.compactIndex(ctx)
	}
	return cleaned, err
}

// sortedByNumber returns the records, the oldest first.
func sortedByNumber(list []Record) []Record {
	return slices.SortedFunc(slices.Values(list), func(a, b Record) int { return int(a.Number - b.Number) })
}

// The total size of all checkpoints is a sum over all sessions of all processes. If the
// total was recently far below the limit, the next few saves cannot exceed it and skip the
// sum.
const (
	// cachedSaves bounds the number of saves that skip the sum, cachedTime the time during
	// which they may skip it, since other processes save too.
	cachedSaves = 32
	cachedTime  = 10 * time.Second
	// cachedWriters is the number of processes that can save at the same rate without
	// exceeding the limit.
	cachedWriters = 16
)

// quotaCache is the number of saves that may still skip the sum.
type quotaCache struct {
	mu    sync.Mutex
	left  int64
	asked time.Time
}

// takeSave reports whether one more save may skip the sum, and counts that save.
func (h *quotaCache) takeSave(now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.left <= 0 || now.Before(h.asked) || now.Sub(h.asked) >= cachedTime {
		return false
	}
	h.left--
	return true
}

// setUsed sets the number of saves that may skip the sum, after the total was computed.
func (h *quotaCache) setUsed(now time.Time, l Limits, used int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.left, h.asked = 0, now
	if l.CheckpointBytes > 0 {
		free := min(fractionOf(l.TotalBytes, l.Warn), fractionOf(l.TotalBytes, l.Clean)) - used
		h.left = min(cachedSaves, free/(cachedWriters*l.CheckpointBytes))
	}
}

// usedWith returns the total size after a save of more bytes. matters is false, and the
// size is not computed, if the total was recently far below the limit.
func (s *Service) usedWith(ctx context.Context, more int64) (used int64, matters bool, err error) {
	now := s.o.Now()
	if more <= s.o.Limits.CheckpointBytes && s.headroom.takeSave(now) {
		return 0, false, nil
	}
	totals, err := s.o.Index.Totals(ctx)
	if err != nil {
		return 0, false, err
	}
	s.headroom.setUsed(now, s.o.Limits, totals.Stored+more)
	return totals.Stored + more, true, nil
}
