package checkpoint_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/blob"
	"github.com/guideway-dev/guideway/internal/contexts/blob/seal"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/guideway-dev/guideway/internal/testutil/crash"
)

// blobPath returns the file of a checkpoint's blob.
func (r *rig) blobPath(t *testing.T, id string) string {
	t.Helper()
	rec, err := r.index.Checkpoint(t.Context(), id)
	mustSucceed(t, err)
	return filepath.Join(r.dir, "contexts", "blobs", string(rec.Blob[:2]), string(rec.Blob))
}

// flipBit inverts one bit of a file.
func flipBit(t *testing.T, path string, at int) {
	t.Helper()
	text, err := os.ReadFile(path)
	mustSucceed(t, err)
	text[at%len(text)] ^= 1 << (at % 8)
	mustSucceed(t, os.WriteFile(path, text, 0o600))
}

// saveForty saves a series of 40 checkpoints, of which the 32nd is a keyframe.
func saveForty(t *testing.T, r *rig) []string {
	t.Helper()
	var ids []string
	for i := range 40 {
		ids = append(ids, r.mustSave(t, "work", bulkyContext(i)).ID)
	}
	r.FinishFolds()
	return ids
}

// TestDamagedBlob checks that a damaged blob never yields a wrong context. Its checkpoint
// and the older checkpoints that depend on it cannot be read. Load then returns the newest
// older readable checkpoint with Degraded set.
func TestDamagedBlob(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"flipped", "gone", "empty", "another's"} {
		for _, hit := range []int{39, 35, 31, 10, 0} {
			t.Run(fmt.Sprint(how, " ", hit), func(t *testing.T) {
				t.Parallel()
				r := openRig(t, checkpoint.ModeFiles)
				ids := saveForty(t, r)
				path := r.blobPath(t, ids[hit])
				switch how {
				case "flipped":
					flipBit(t, path, 12345)
				case "gone":
					mustSucceed(t, os.Remove(path))
				case "empty":
					mustSucceed(t, os.WriteFile(path, nil, 0o600))
				default:
					text, err := os.ReadFile(r.blobPath(t, ids[(hit+7)%40]))
					mustSucceed(t, err)
					mustSucceed(t, os.WriteFile(path, text, 0o600))
				}
				r = reopenRig(t, r)
				lost := map[int]bool{}
				for i := hit; i >= 0 && (i == hit || i%32 != 31); i-- {
					lost[i] = true
				}
				for i, id := range ids {
					checkDegraded(t, r, ids, i, id, lost)
				}
				report, err := r.Verify(t.Context())
				mustSucceed(t, err)
				if len(report.Damaged) != len(lost) || report.Checkpoints != 40 {
					t.Errorf("Verify checked %d and found %d damaged, want %d", report.Checkpoints, len(report.Damaged), len(lost))
				}
				rec, err := r.Get(t.Context(), testPrincipal(), ids[hit])
				mustSucceed(t, err)
				if rec.Problem == "" {
					t.Error("the damage is not marked")
				}
				// A save to the session still succeeds.
				r.wantContext(t, r.mustSave(t, "work", bulkyContext(50)).ID, bulkyContext(50))
			})
		}
	}
}

// checkDegraded checks that a load returns the requested checkpoint, or the newest older
// readable one.
func checkDegraded(t *testing.T, r *rig, ids []string, i int, id string, lost map[int]bool) {
	t.Helper()
	if !lost[i] {
		r.wantContext(t, id, bulkyContext(i))
		return
	}
	expected := i
	for expected >= 0 && lost[expected] {
		expected--
	}
	loaded, err := r.Load(t.Context(), testPrincipal(), checkpoint.LoadRequest{ID: id})
	if expected < 0 {
		wantCode(t, err, guideway.CodeInternal, "nothing older can be read")
		return
	}
	mustSucceed(t, err)
	if loaded.ID != ids[expected] || string(loaded.Context) != bulkyContext(expected) || loaded.Degraded == nil || loaded.Degraded.Wanted != id {
		t.Errorf("instead of %d Load returned %s (%+v), want %d", i, loaded.ID, loaded.Degraded, expected)
	}
}

// TestReadableIsUnmarked checks that Verify removes the damage mark of a checkpoint that can
// be read again.
func TestReadableIsUnmarked(t *testing.T) {
	t.Parallel()
	r := openRig(t, checkpoint.ModeSQLite)
	id := r.mustSave(t, "work", bulkyContext(1)).ID
	path := r.blobPath(t, id)
	good, err := os.ReadFile(path)
	mustSucceed(t, err)
	flipBit(t, path, 100)
	_, err = r.Load(t.Context(), testPrincipal(), checkpoint.LoadRequest{ID: id})
	wantCode(t, err, guideway.CodeInternal, "a damaged checkpoint")
	mustSucceed(t, os.WriteFile(path, good, 0o600))
	report, err := r.Verify(t.Context())
	mustSucceed(t, err)
	rec, err := r.Get(t.Context(), testPrincipal(), id)
	mustSucceed(t, err)
	if !slices.Equal(report.Healed, []string{id}) || rec.Problem != "" {
		t.Errorf("Verify returned %+v, the record is %+v", report, rec)
	}
}

// TestLostIndex checks that the first call rebuilds a missing index from the blobs, with
// the contexts, order, names, branches and search words of the checkpoints.
func TestLostIndex(t *testing.T) {
	t.Parallel()
	for _, mode := range []checkpoint.Mode{checkpoint.ModeSQLite, checkpoint.ModeFiles} {
		for _, keys := range []bool{false, true} {
			t.Run(fmt.Sprint(mode, " encrypted ", keys), func(t *testing.T) {
				t.Parallel()
				var options []func(*checkpoint.Options)
				if keys {
					options = append(options, withEncryption(t, t.TempDir()))
				}
				r := openRig(t, mode, options...)
				want := map[string]string{}
				for i := range 40 {
					saved := r.mustSave(t, fmt.Sprint("s", i%3), bulkyContext(i), func(s *checkpoint.SaveRequest) { s.Name, s.Tags = fmt.Sprint("step ", i), []string{"x"} })
					want[saved.ID] = bulkyContext(i)
				}
				base := historyIDs(t, r, "s1")[5]
				branch := r.mustSave(t, "s1", bulkyContext(99), func(s *checkpoint.SaveRequest) { s.ExpectedHead = base })
				want[branch.ID] = bulkyContext(99)
				gone := historyIDs(t, r, "s2")[3]
				_, err := r.Delete(t.Context(), testPrincipal(), checkpoint.DeleteRequest{IDs: []string{gone}})
				mustSucceed(t, err)
				delete(want, gone)
				before := sessionSummaries(t, r)
				mustSucceed(t, r.Close())
				removeIndex(t, r)
				r = reopenRig(t, r, options...)
				last, err := r.Load(t.Context(), testPrincipal(), checkpoint.LoadRequest{Session: "s1"})
				mustSucceed(t, err)
				if last.ID != branch.ID || !last.Branch || last.Parent != base {
					t.Errorf("the last checkpoint of s1 is %+v", last.Record)
				}
				for id, text := range want {
					r.wantContext(t, id, text)
				}
				if after := sessionSummaries(t, r); !slices.Equal(after, before) {
					t.Errorf("the sessions are\n%v\nwant\n%v", after, before)
				}
				page, err := r.List(t.Context(), testPrincipal(), checkpoint.ListRequest{Query: "gate mend", Limit: 100})
				mustSucceed(t, err)
				if found := len(page.Checkpoints); found != len(want) {
					t.Errorf("words match %d of %d checkpoints", found, len(want))
				}
				report, err := r.Verify(t.Context())
				mustSucceed(t, err)
				if len(report.Damaged) > 0 || report.Unknown > 0 || report.Checkpoints != len(want) {
					t.Errorf("Verify returned %+v", report)
				}
			})
		}
	}
}

// sessionSummaries returns a summary of all sessions, one string per checkpoint.
func sessionSummaries(t *testing.T, r *rig) []string {
	t.Helper()
	var list []string
	for _, session := range []string{"s0", "s1", "s2"} {
		all, err := r.index.History(t.Context(), checkpoint.SeriesKey{User: "ada", Session: session}, checkpoint.History{})
		mustSucceed(t, err)
		for _, one := range all {
			list = append(list, fmt.Sprint(one.ID, one.Session, one.Number, one.Branch, one.Name, one.Tags, one.Created, one.Bytes, one.Base))
		}
	}
	return list
}

// removeIndex removes the index of a closed rig.
func removeIndex(t *testing.T, r *rig) {
	t.Helper()
	if closer, ok := r.index.(interface{ Close() error }); ok {
		mustSucceed(t, closer.Close())
	}
	if r.mode == checkpoint.ModeFiles {
		mustSucceed(t, os.RemoveAll(filepath.Join(r.dir, "contexts", "index")))
		return
	}
	files, err := filepath.Glob(filepath.Join(r.dir, "guideway.db*"))
	mustSucceed(t, err)
	for _, file := range files {
		mustSucceed(t, os.Remove(file))
	}
}

// TestRolledBackIndex checks that Rebuild adds the checkpoints and forms that an older copy
// of the index lacks, and that deleted checkpoints stay deleted.
func TestRolledBackIndex(t *testing.T) {
	t.Parallel()
	r := openRig(t, checkpoint.ModeFiles)
	var ids []string
	for i := range 5 {
		ids = append(ids, r.mustSave(t, "work", bulkyContext(i)).ID)
	}
	_, err := r.Delete(t.Context(), testPrincipal(), checkpoint.DeleteRequest{IDs: ids[:1]})
	mustSucceed(t, err)
	index := filepath.Join(r.dir, "contexts", "index")
	backup := filepath.Join(t.TempDir(), "index")
	mustSucceed(t, os.CopyFS(backup, os.DirFS(index)))
	for i := 5; i < 10; i++ {
		ids = append(ids, r.mustSave(t, "work", bulkyContext(i)).ID)
	}
	r.FinishFolds()
	mustSucceed(t, os.RemoveAll(index))
	mustSucceed(t, os.CopyFS(index, os.DirFS(backup)))
	mustSucceed(t, walkFiles(index, func(path string, info os.FileInfo) {
		if !info.IsDir() {
			mustSucceed(t, os.Chmod(path, 0o600))
		}
	}))
	r = reopenRig(t, r)
	rebuilt, err := r.Rebuild(t.Context())
	mustSucceed(t, err)
	if rebuilt.Adopted != 5 || rebuilt.Mended != 1 {
		t.Errorf("Rebuild returned %+v", rebuilt)
	}
	for i := 1; i < 10; i++ {
		r.wantContext(t, ids[i], bulkyContext(i))
	}
	if got := historyIDs(t, r, "work"); len(got) != 9 || got[0] != ids[9] {
		t.Errorf("the history is %v", got)
	}
}

// TestSweep checks that a sweep removes only the remains of deletions and crashes, and adds
// checkpoints that are missing from the index.
func TestSweep(t *testing.T) {
	t.Parallel()
	r := openRig(t, checkpoint.ModeSQLite)
	var ids []string
	for i := range 4 {
		ids = append(ids, r.mustSave(t, "work", bulkyContext(i)).ID)
	}
	other := r.mustSave(t, "play", `{"a":1}`)
	// A crash before unlinking leaves an older form and a deleted checkpoint.
	stale, err := r.blobs.Get(t.Context(), mustRecord(t, r, ids[3]).Blob)
	mustSucceed(t, err)
	deleted, err := r.blobs.Get(t.Context(), other.Blob)
	mustSucceed(t, err)
	ids = append(ids, r.mustSave(t, "work", bulkyContext(4)).ID)
	_, err = r.Delete(t.Context(), testPrincipal(), checkpoint.DeleteRequest{IDs: []string{other.ID}})
	mustSucceed(t, err)
	for _, data := range [][]byte{stale, deleted, []byte("an unknown blob")} {
		_, err := r.blobs.Put(t.Context(), data)
		mustSucceed(t, err)
	}
	// A crash between the writes of the blob and the index leaves an unknown blob.
	lost := copyForeignBlob(t, r, "lost", `{"lost":true}`)
	done, err := r.Maintain(t.Context())
	mustSucceed(t, err)
	if done.Swept.Blobs != 0 {
		t.Errorf("a young blob was swept: %+v", done.Swept)
	}
	r.clock.Add(time.Hour)
	done, err = r.Maintain(t.Context())
	mustSucceed(t, err)
	if done.Swept.Blobs != 2 {
		t.Errorf("swept: %+v", done.Swept)
	}
	for i, id := range ids {
		r.wantContext(t, id, bulkyContext(i))
	}
	r.wantContext(t, lost, `{"lost":true}`)
	_, err = r.Load(t.Context(), testPrincipal(), checkpoint.LoadRequest{ID: other.ID})
	wantCode(t, err, guideway.CodeNotFound, "a deleted checkpoint")
	r.clock.Add(60 * 24 * time.Hour)
	done, err = r.Maintain(t.Context())
	mustSucceed(t, err)
	if done.Swept.Blobs != 1 { // a blob without a readable header is kept for a month
		t.Errorf("the later sweep returned %+v", done.Swept)
	}
}

func mustRecord(t *testing.T, r *rig, id string) checkpoint.Record {
	t.Helper()
	rec, err := r.index.Checkpoint(t.Context(), id)
	mustSucceed(t, err)
	return rec
}

// copyForeignBlob saves a checkpoint to a second store, copies its blob to the rig, and
// returns the id of the checkpoint.
func copyForeignBlob(t *testing.T, to *rig, session, context string) string {
	t.Helper()
	from := openRig(t, checkpoint.ModeMemory)
	saved := from.mustSave(t, session, context)
	data, err := from.blobs.Get(t.Context(), saved.Blob)
	mustSucceed(t, err)
	_, err = to.blobs.Put(t.Context(), data)
	mustSucceed(t, err)
	return saved.ID
}

// TestFolds checks that maintenance stores whole checkpoints as deltas.
func TestFolds(t *testing.T) {
	t.Parallel()
	r := openRig(t, checkpoint.ModeFiles)
	ids := saveForty(t, r)
	small, err := r.Stats(t.Context(), "")
	mustSucceed(t, err)
	grown := storeAllWhole(t, r, ids)
	if grown < 2*small.Stored {
		t.Fatalf("the session takes %d bytes unfolded, %d folded", grown, small.Stored)
	}
	kept, err := r.Maintain(t.Context())
	mustSucceed(t, err)
	after, err := r.Stats(t.Context(), "")
	mustSucceed(t, err)
	if kept.Folded != 38 || after.Stored > small.Stored*11/10 {
		t.Errorf("%d checkpoints were folded, and the session takes %d bytes, before %d", kept.Folded, after.Stored, small.Stored)
	}
	for i, id := range ids {
		r.wantContext(t, id, bulkyContext(i))
	}
	if n := len(r.blobFiles(t)); n != 40 {
		t.Errorf("there are %d blobs", n)
	}
}

// TestFoldsTogether checks that waiting checkpoints are stored as deltas even if another process
// has deleted one of them, that no blob is left, and that maintenance stores the rest.
func TestFoldsTogether(t *testing.T) {
	t.Parallel()
	for _, mode := range []checkpoint.Mode{checkpoint.ModeSQLite, checkpoint.ModeFiles} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			r := openRig(t, mode)
			ids := make([]string, 10)
			for i := range ids {
				ids[i] = r.mustSave(t, "work", bulkyContext(i)).ID
			}
			_, err := reopenRig(t, r).Delete(t.Context(), testPrincipal(), checkpoint.DeleteRequest{IDs: ids[4:5]})
			mustSucceed(t, err)
			isDelta := func(i int) bool { return mustRecord(t, r, ids[i]).Base != "" }
			r.FinishFolds()
			for i, id := range ids {
				if i == 4 {
					continue
				}
				if i != 3 && isDelta(i) != (i < 9) { // the successor of the fourth is gone
					t.Errorf("checkpoint %d is a delta: %v", i+1, isDelta(i))
				}
				r.wantContext(t, id, bulkyContext(i))
			}
			if n := len(r.blobFiles(t)); n != len(ids)-1 {
				t.Errorf("there are %d blobs", n)
			}
			_, err = r.Maintain(t.Context())
			mustSucceed(t, err)
			if !isDelta(3) {
				t.Error("after maintenance, checkpoint 4 is whole")
			}
		})
	}
}

// storeAllWhole stores every checkpoint whole and returns their total size.
func storeAllWhole(t *testing.T, r *rig, ids []string) int64 {
	t.Helper()
	for _, id := range ids {
		raw := r.mustLoad(t, id)
		rec := mustRecord(t, r, id)
		whole := wholeForm(t, r, rec, string(raw.Context))
		mustSucceed(t, r.index.Apply(t.Context(), checkpoint.Change{Series: rec.SeriesKey, Swaps: []checkpoint.Swap{{ID: id, Old: rec.Blob, New: whole}}}))
		mustSucceed(t, r.blobs.Delete(t.Context(), rec.Blob))
	}
	stats, err := r.Stats(t.Context(), "")
	mustSucceed(t, err)
	return stats.Stored
}

// wholeForm stores a checkpoint whole in the rig's blobs by importing it into a second
// store.
func wholeForm(t *testing.T, r *rig, rec checkpoint.Record, context string) checkpoint.Form {
	t.Helper()
	bundle := checkpoint.Bundle{Format: "guideway-checkpoints", Version: 1, Checkpoints: []checkpoint.Bundled{{
		ID: rec.ID, Session: rec.Session, Kind: rec.Kind, Created: rec.Created, Context: json.RawMessage(context),
	}}}
	text, err := json.Marshal(bundle)
	mustSucceed(t, err)
	alone := openRig(t, checkpoint.ModeMemory)
	_, err = alone.Import(t.Context(), testPrincipal(), checkpoint.ImportRequest{Data: text})
	mustSucceed(t, err)
	form := mustRecord(t, alone, rec.ID).Form
	data, err := alone.blobs.Get(t.Context(), form.Blob)
	mustSucceed(t, err)
	_, err = r.blobs.Put(t.Context(), data)
	mustSucceed(t, err)
	return form
}

// TestBitFlips flips bits in blobs, indexes and slots and checks that each load returns the
// right context, an older one with Degraded set, or an error. GUIDEWAY_CRASH_SEED repeats a
// run.
func TestBitFlips(t *testing.T) {
	t.Parallel()
	for _, seed := range crash.Seeds(t) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			flipBits(t, rand.New(rand.NewPCG(seed, 0)))
		})
	}
}

// flipBits flips one random bit in each of several stores and checks every load.
func flipBits(t *testing.T, rng *rand.Rand) {
	t.Helper()
	dirs := []string{"contexts/blobs", "contexts/index", "contexts/slots"}
	for round := range 12 {
		keys := t.TempDir()
		r := openRig(t, checkpoint.ModeFiles, withEncryption(t, keys))
		want := map[string]string{}
		for i := range 12 {
			want[r.mustSave(t, fmt.Sprint("s", i%2), bulkyContext(i)).ID] = bulkyContext(i)
		}
		mustSucceed(t, r.Close())
		var files []string
		mustSucceed(t, walkFiles(filepath.Join(r.dir, dirs[round%3]), func(path string, info os.FileInfo) {
			if !info.IsDir() && info.Size() > 0 {
				files = append(files, path)
			}
		}))
		hit := files[rng.IntN(len(files))]
		at := rng.IntN(1 << 20)
		flipBit(t, hit, at)
		if strings.HasSuffix(hit, "master") {
			blobs, err := blob.OpenFiles(blob.FilesOptions{Dir: filepath.Join(r.dir, "contexts")})
			mustSucceed(t, err)
			if _, err := seal.Open(t.Context(), blobs, seal.File{Path: filepath.Join(keys, "key")}); err == nil {
				t.Errorf("a bit of the master slot was flipped at %d, but the store was opened", at)
			}
			continue
		}
		r = reopenRig(t, r, withEncryption(t, keys))
		for id, text := range want {
			loaded, err := r.Load(t.Context(), testPrincipal(), checkpoint.LoadRequest{ID: id})
			switch {
			case err != nil:
			case loaded.Degraded == nil && loaded.ID == id && string(loaded.Context) == text:
			case loaded.Degraded != nil && loaded.ID != id && want[loaded.ID] == string(loaded.Context):
			default:
				t.Fatalf("round %d: with a bit of %s flipped at %d, %s is %.100s", round, hit, at, id, loaded.Context)
			}
		}
	}
}

// slowIndex applies the swap of a fold only after a sweep of sweptBlobs, or some time.
type slowIndex struct {
	checkpoint.Index
	reached, swept chan struct{}
}

func (x slowIndex) Apply(ctx context.Context, c checkpoint.Change) error {
	if len(c.Swaps) > 0 {
		close(x.reached)
		select {
		case <-x.swept:
		case <-time.After(200 * time.Millisecond):
		}
	}
	return x.Index.Apply(ctx, c)
}

type sweptBlobs struct {
	blob.Store
	swept chan struct{}
}

func (b sweptBlobs) Sweep(ctx context.Context, keep func(blob.Info) bool) (blob.Swept, error) {
	defer close(b.swept)
	return b.Store.Sweep(ctx, keep)
}

// TestMaintainDuringFold checks that a service whose clock is ahead of that of the files does
// not sweep the new form of a checkpoint before the index refers to it.
func TestMaintainDuringFold(t *testing.T) {
	t.Parallel()
	reached, swept := make(chan struct{}), make(chan struct{})
	r := openRig(t, checkpoint.ModeSQLite, func(o *checkpoint.Options) {
		o.Index, o.Blobs = slowIndex{o.Index, reached, swept}, sweptBlobs{o.Blobs, swept}
	})
	r.clock.Add(25 * 24 * time.Hour)
	numbers := make([]uint64, 100)
	for i := range numbers {
		numbers[i] = rand.Uint64()
	}
	text := fmt.Sprintf(`{"text":"some %d"}`, numbers)
	first := r.mustSave(t, "work", text)
	r.mustSave(t, "work", strings.Replace(text, "some", "other", 1))
	<-reached
	if _, err := r.Maintain(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.FinishFolds()
	if rec, err := r.index.Checkpoint(t.Context(), first.ID); err != nil || rec.Base == "" {
		t.Errorf("the first checkpoint was not folded: %+v, %v", rec, err)
	}
	r.wantContext(t, first.ID, text)
}
