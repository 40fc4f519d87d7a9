package checkpoint_test

import (
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
)

// blobPath gives the file of a checkpoint's blob.
func (r *rig) blobPath(t *testing.T, id string) string {
	t.Helper()
	rec, err := r.index.Checkpoint(t.Context(), id)
	must(t, err)
	return filepath.Join(r.dir, "contexts", "blobs", string(rec.Blob[:2]), string(rec.Blob))
}

// flip changes one bit of a file.
func flip(t *testing.T, path string, at int) {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	text[at%len(text)] ^= 1 << (at % 8)
	must(t, os.WriteFile(path, text, 0o600))
}

// lines of 40 checkpoints: the 32nd is a keyframe.
func forty(t *testing.T, r *rig) []string {
	t.Helper()
	var ids []string
	for i := range 40 {
		ids = append(ids, r.save(t, "work", bulky(i)).ID)
	}
	return ids
}

// TestDamagedBlob: damage to the blob of any checkpoint is never a wrong context;
// it costs that one and the older ones up to the next whole one, and the newest
// older one that can be read is given in its place, with a word.
func TestDamagedBlob(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"flipped", "gone", "empty", "another's"} {
		for _, hit := range []int{39, 35, 31, 10, 0} {
			t.Run(fmt.Sprint(how, " ", hit), func(t *testing.T) {
				t.Parallel()
				r := setup(t, checkpoint.ModeFiles)
				ids := forty(t, r)
				path := r.blobPath(t, ids[hit])
				switch how {
				case "flipped":
					flip(t, path, 12345)
				case "gone":
					must(t, os.Remove(path))
				case "empty":
					must(t, os.WriteFile(path, nil, 0o600))
				default:
					text, err := os.ReadFile(r.blobPath(t, ids[(hit+7)%40]))
					must(t, err)
					must(t, os.WriteFile(path, text, 0o600))
				}
				r = reopen(t, r)
				lost := map[int]bool{}
				for i := hit; i >= 0 && (i == hit || i%32 != 31); i-- {
					lost[i] = true
				}
				for i, id := range ids {
					checkDegraded(t, r, ids, i, id, lost)
				}
				report, err := r.Verify(t.Context())
				must(t, err)
				if len(report.Damaged) != len(lost) || report.Checkpoints != 40 {
					t.Errorf("verified are %d, damaged %d, want %d", report.Checkpoints, len(report.Damaged), len(lost))
				}
				rec, err := r.Get(t.Context(), ada(), ids[hit])
				must(t, err)
				if rec.Problem == "" {
					t.Error("the damage is not marked")
				}
				// The session goes on.
				r.wantContext(t, r.save(t, "work", bulky(50)).ID, bulky(50))
			})
		}
	}
}

// checkDegraded loads one checkpoint and wants it, or the newest older one.
func checkDegraded(t *testing.T, r *rig, ids []string, i int, id string, lost map[int]bool) {
	t.Helper()
	if !lost[i] {
		r.wantContext(t, id, bulky(i))
		return
	}
	expected := i
	for expected >= 0 && lost[expected] {
		expected--
	}
	loaded, err := r.Load(t.Context(), ada(), checkpoint.LoadRequest{ID: id})
	if expected < 0 {
		wantCode(t, err, guideway.CodeInternal, "nothing older can be read")
		return
	}
	must(t, err)
	if loaded.ID != ids[expected] || string(loaded.Context) != bulky(expected) || loaded.Degraded == nil || loaded.Degraded.Wanted != id {
		t.Errorf("in the place of %d comes %s (%+v), want %d", i, loaded.ID, loaded.Degraded, expected)
	}
}

// TestHealed: what can be read again is not marked any more.
func TestHealed(t *testing.T) {
	t.Parallel()
	r := setup(t, checkpoint.ModeSQLite)
	id := r.save(t, "work", bulky(1)).ID
	path := r.blobPath(t, id)
	good, err := os.ReadFile(path)
	must(t, err)
	flip(t, path, 100)
	_, err = r.Load(t.Context(), ada(), checkpoint.LoadRequest{ID: id})
	wantCode(t, err, guideway.CodeInternal, "a damaged checkpoint")
	must(t, os.WriteFile(path, good, 0o600))
	report, err := r.Verify(t.Context())
	must(t, err)
	rec, err := r.Get(t.Context(), ada(), id)
	must(t, err)
	if !slices.Equal(report.Healed, []string{id}) || rec.Problem != "" {
		t.Errorf("verified is %+v, the record %+v", report, rec)
	}
}

// TestLostIndex: an index that is gone is made anew from the blobs by the first
// call: contexts, order, names, branches and words are as they were.
func TestLostIndex(t *testing.T) {
	t.Parallel()
	for _, mode := range []checkpoint.Mode{checkpoint.ModeSQLite, checkpoint.ModeFiles} {
		for _, keys := range []bool{false, true} {
			t.Run(fmt.Sprint(mode, " encrypted ", keys), func(t *testing.T) {
				t.Parallel()
				var options []func(*checkpoint.Options)
				if keys {
					options = append(options, encrypted(t, t.TempDir()))
				}
				r := setup(t, mode, options...)
				want := map[string]string{}
				for i := range 40 {
					saved := r.save(t, fmt.Sprint("s", i%3), bulky(i), func(s *checkpoint.SaveRequest) { s.Name, s.Tags = fmt.Sprint("step ", i), []string{"x"} })
					want[saved.ID] = bulky(i)
				}
				base := historyIDs(t, r, "s1")[5]
				branch := r.save(t, "s1", bulky(99), func(s *checkpoint.SaveRequest) { s.ExpectedHead = base })
				want[branch.ID] = bulky(99)
				gone := historyIDs(t, r, "s2")[3]
				_, err := r.Delete(t.Context(), ada(), checkpoint.DeleteRequest{IDs: []string{gone}})
				must(t, err)
				delete(want, gone)
				before := histories(t, r)
				must(t, r.Close())
				forget(t, r)
				r = reopen(t, r, options...)
				last, err := r.Load(t.Context(), ada(), checkpoint.LoadRequest{Session: "s1"})
				must(t, err)
				if last.ID != branch.ID || !last.Branch || last.Parent != base {
					t.Errorf("the last one of s1 is %+v", last.Record)
				}
				for id, text := range want {
					r.wantContext(t, id, text)
				}
				if after := histories(t, r); !slices.Equal(after, before) {
					t.Errorf("the sessions are\n%v\nwant\n%v", after, before)
				}
				page, err := r.List(t.Context(), ada(), checkpoint.ListRequest{Query: "gate mend", Limit: 100})
				must(t, err)
				if found := len(page.Checkpoints); (found == len(want)) == keys || keys && found > 0 {
					t.Errorf("by words are found %d of %d", found, len(want))
				}
				report, err := r.Verify(t.Context())
				must(t, err)
				if len(report.Damaged) > 0 || report.Unknown > 0 || report.Checkpoints != len(want) {
					t.Errorf("verified is %+v", report)
				}
			})
		}
	}
}

// histories gives what matters of all sessions, one checkpoint a text.
func histories(t *testing.T, r *rig) []string {
	t.Helper()
	var list []string
	for _, session := range []string{"s0", "s1", "s2"} {
		all, err := r.index.History(t.Context(), checkpoint.LineKey{User: "ada", Session: session}, checkpoint.History{})
		must(t, err)
		for _, one := range all {
			list = append(list, fmt.Sprint(one.ID, one.Session, one.Number, one.Branch, one.Name, one.Tags, one.Created, one.Bytes, one.Base))
		}
	}
	return list
}

// forget removes the index of a rig that is closed.
func forget(t *testing.T, r *rig) {
	t.Helper()
	if closer, ok := r.index.(interface{ Close() error }); ok {
		must(t, closer.Close())
	}
	if r.mode == checkpoint.ModeFiles {
		must(t, os.RemoveAll(filepath.Join(r.dir, "contexts", "index")))
		return
	}
	files, err := filepath.Glob(filepath.Join(r.dir, "guideway.db*"))
	must(t, err)
	for _, file := range files {
		must(t, os.Remove(file))
	}
}

// TestOlderIndex: an index that was rolled back takes up what it has lost, and
// what has been stored otherwise since; what was deleted before stays deleted.
func TestOlderIndex(t *testing.T) {
	t.Parallel()
	r := setup(t, checkpoint.ModeFiles)
	var ids []string
	for i := range 5 {
		ids = append(ids, r.save(t, "work", bulky(i)).ID)
	}
	_, err := r.Delete(t.Context(), ada(), checkpoint.DeleteRequest{IDs: ids[:1]})
	must(t, err)
	index := filepath.Join(r.dir, "contexts", "index")
	backup := filepath.Join(t.TempDir(), "index")
	must(t, os.CopyFS(backup, os.DirFS(index)))
	for i := 5; i < 10; i++ {
		ids = append(ids, r.save(t, "work", bulky(i)).ID)
	}
	must(t, os.RemoveAll(index))
	must(t, os.CopyFS(index, os.DirFS(backup)))
	must(t, walk(index, func(path string, info os.FileInfo) {
		if !info.IsDir() {
			must(t, os.Chmod(path, 0o600))
		}
	}))
	r = reopen(t, r)
	rebuilt, err := r.Rebuild(t.Context())
	must(t, err)
	if rebuilt.Adopted != 5 || rebuilt.Mended != 1 {
		t.Errorf("rebuilt is %+v", rebuilt)
	}
	for i := 1; i < 10; i++ {
		r.wantContext(t, ids[i], bulky(i))
	}
	if got := historyIDs(t, r, "work"); len(got) != 9 || got[0] != ids[9] {
		t.Errorf("the history is %v", got)
	}
}

// TestSweep: what deletions and crashes have left goes, and nothing else. What the
// index only does not know is taken up.
func TestSweep(t *testing.T) {
	t.Parallel()
	r := setup(t, checkpoint.ModeSQLite)
	var ids []string
	for i := range 4 {
		ids = append(ids, r.save(t, "work", bulky(i)).ID)
	}
	other := r.save(t, "play", `{"a":1}`)
	// As a crash before unlinking leaves it: an older form, and a deleted one.
	stale, err := r.blobs.Get(t.Context(), mustRecord(t, r, ids[3]).Blob)
	must(t, err)
	deleted, err := r.blobs.Get(t.Context(), other.Blob)
	must(t, err)
	ids = append(ids, r.save(t, "work", bulky(4)).ID)
	_, err = r.Delete(t.Context(), ada(), checkpoint.DeleteRequest{IDs: []string{other.ID}})
	must(t, err)
	for _, data := range [][]byte{stale, deleted, []byte("what nobody has written")} {
		_, err := r.blobs.Put(t.Context(), data)
		must(t, err)
	}
	// As a crash between the blob and the index leaves it.
	lost := stranger(t, r, "lost", `{"lost":true}`)
	swept, err := r.Sweep(t.Context())
	must(t, err)
	if swept.Blobs != 0 {
		t.Errorf("what is young was swept: %+v", swept)
	}
	r.clock.Add(time.Hour)
	swept, err = r.Sweep(t.Context())
	must(t, err)
	if swept.Blobs != 2 {
		t.Errorf("swept is %+v", swept)
	}
	for i, id := range ids {
		r.wantContext(t, id, bulky(i))
	}
	r.wantContext(t, lost, `{"lost":true}`)
	_, err = r.Load(t.Context(), ada(), checkpoint.LoadRequest{ID: other.ID})
	wantCode(t, err, guideway.CodeNotFound, "what was deleted")
	r.clock.Add(60 * 24 * time.Hour)
	swept, err = r.Sweep(t.Context())
	must(t, err)
	if swept.Blobs != 1 { // what does not say what it is, after a month
		t.Errorf("swept later is %+v", swept)
	}
}

func mustRecord(t *testing.T, r *rig, id string) checkpoint.Record {
	t.Helper()
	rec, err := r.index.Checkpoint(t.Context(), id)
	must(t, err)
	return rec
}

// stranger saves a checkpoint to a store of its own and carries its blob over.
func stranger(t *testing.T, to *rig, session, context string) string {
	t.Helper()
	from := setup(t, checkpoint.ModeMemory)
	saved := from.save(t, session, context)
	data, err := from.blobs.Get(t.Context(), saved.Blob)
	must(t, err)
	_, err = to.blobs.Put(t.Context(), data)
	must(t, err)
	return saved.ID
}

// TestFolds: what was left whole without need is made smaller by maintenance.
func TestFolds(t *testing.T) {
	t.Parallel()
	r := setup(t, checkpoint.ModeFiles)
	ids := forty(t, r)
	small, err := r.Stats(t.Context(), "")
	must(t, err)
	grown := unfold(t, r, ids)
	if grown < 2*small.Stored {
		t.Fatalf("unfolded it takes %d bytes, folded %d", grown, small.Stored)
	}
	kept, err := r.Maintain(t.Context())
	must(t, err)
	after, err := r.Stats(t.Context(), "")
	must(t, err)
	if kept.Folded != 38 || after.Stored > small.Stored*11/10 {
		t.Errorf("folded are %d, and it takes %d bytes, %d before", kept.Folded, after.Stored, small.Stored)
	}
	for i, id := range ids {
		r.wantContext(t, id, bulky(i))
	}
	if n := len(r.blobFiles(t)); n != 40 {
		t.Errorf("there are %d blobs", n)
	}
}

// unfold stores every checkpoint whole, and gives what they take then.
func unfold(t *testing.T, r *rig, ids []string) int64 {
	t.Helper()
	for _, id := range ids {
		raw := r.load(t, id)
		rec := mustRecord(t, r, id)
		whole := wholeForm(t, r, rec, string(raw.Context))
		must(t, r.index.Apply(t.Context(), checkpoint.Change{Line: rec.LineKey, Swaps: []checkpoint.Swap{{ID: id, Old: rec.Blob, New: whole}}}))
		must(t, r.blobs.Delete(t.Context(), rec.Blob))
	}
	stats, err := r.Stats(t.Context(), "")
	must(t, err)
	return stats.Stored
}

// wholeForm makes the blob of a checkpoint that stands alone, by importing it into
// a store of its own.
func wholeForm(t *testing.T, r *rig, rec checkpoint.Record, context string) checkpoint.Form {
	t.Helper()
	bundle := checkpoint.Bundle{Format: "guideway-checkpoints", Version: 1, Checkpoints: []checkpoint.Bundled{{
		ID: rec.ID, Session: rec.Session, Kind: rec.Kind, Created: rec.Created, Context: json.RawMessage(context),
	}}}
	text, err := json.Marshal(bundle)
	must(t, err)
	alone := setup(t, checkpoint.ModeMemory)
	_, err = alone.Import(t.Context(), ada(), checkpoint.ImportRequest{Data: text})
	must(t, err)
	form := mustRecord(t, alone, rec.ID).Form
	data, err := alone.blobs.Get(t.Context(), form.Blob)
	must(t, err)
	_, err = r.blobs.Put(t.Context(), data)
	must(t, err)
	return form
}

// TestNoise flips bits of every kind of file, one after the other, and wants each
// context right, or an older one with a word, or an error.
func TestNoise(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	rng := rand.New(rand.NewPCG(seed, 0))
	t.Logf("the seed is %d", seed)
	dirs := []string{"contexts/blobs", "contexts/index", "contexts/slots"}
	for round := range 12 {
		keys := t.TempDir()
		r := setup(t, checkpoint.ModeFiles, encrypted(t, keys))
		want := map[string]string{}
		for i := range 12 {
			want[r.save(t, fmt.Sprint("s", i%2), bulky(i)).ID] = bulky(i)
		}
		must(t, r.Close())
		var files []string
		must(t, walk(filepath.Join(r.dir, dirs[round%3]), func(path string, info os.FileInfo) {
			if !info.IsDir() && info.Size() > 0 {
				files = append(files, path)
			}
		}))
		hit := files[rng.IntN(len(files))]
		at := rng.IntN(1 << 20)
		flip(t, hit, at)
		if strings.HasSuffix(hit, "master") {
			blobs, err := blob.OpenFiles(blob.FilesOptions{Dir: filepath.Join(r.dir, "contexts")})
			must(t, err)
			if _, err := seal.Open(t.Context(), blobs, seal.File{Path: filepath.Join(keys, "key")}); err == nil {
				t.Errorf("a bit of the note about the key was flipped at %d, and it was opened", at)
			}
			continue
		}
		r = reopen(t, r, encrypted(t, keys))
		for id, text := range want {
			loaded, err := r.Load(t.Context(), ada(), checkpoint.LoadRequest{ID: id})
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
