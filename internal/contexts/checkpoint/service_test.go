package checkpoint_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/blob"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestRoundTrip: every checkpoint of a line comes back as it was saved, whole or
// as a difference, from this service and from another one.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	onAll(t, func(t *testing.T, mode checkpoint.Mode) {
		r := setup(t, mode)
		var ids []string
		for i := range 70 {
			saved := r.save(t, "work", bulky(i))
			ids = append(ids, saved.ID)
		}
		for _, r := range []*rig{r, reopen(t, r)} {
			for i, id := range ids {
				r.wantContext(t, id, bulky(i))
			}
			last, err := r.Load(t.Context(), ada(), checkpoint.LoadRequest{Session: "work"})
			must(t, err)
			if last.ID != ids[len(ids)-1] {
				t.Errorf("the last one is %s, want %s", last.ID, ids[len(ids)-1])
			}
		}
		history, err := r.index.History(t.Context(), checkpoint.LineKey{User: "ada", Session: "work"}, checkpoint.History{Oldest: true})
		must(t, err)
		for i, rec := range history {
			whole := i == len(history)-1 || i%32 == 31
			if (rec.Base == "") != whole {
				t.Errorf("checkpoint %d has the base %q", i+1, rec.Base)
			}
			if i > 0 && rec.Parent != history[i-1].ID {
				t.Errorf("checkpoint %d follows %q", i+1, rec.Parent)
			}
		}
		if mode != checkpoint.ModeMemory {
			if n := len(r.blobFiles(t)); n != len(ids) {
				t.Errorf("there are %d blobs for %d checkpoints", n, len(ids))
			}
		}
	})
}

// TestCanonical: what comes back is the same JSON, with sorted keys and with
// numbers as they were written.
func TestCanonical(t *testing.T) {
	t.Parallel()
	r := setup(t, checkpoint.ModeMemory)
	for given, expected := range map[string]string{
		`{"b":1, "a":{"d":[1,2.50,1e400],"c":null}}`: `{"a":{"c":null,"d":[1,2.50,1e400]},"b":1}`,
		`{"n":12345678901234567890123}`:              `{"n":12345678901234567890123}`,
		"{\"t\":\"<&>é🙂\u2028\"}":                    "{\"t\":\"<&>é🙂\\u2028\"}",
		`{}`:                                         `{}`,
		`{"a":1,"a":2}`:                              `{"a":2}`,
	} {
		r.wantContext(t, r.save(t, "", given).ID, expected)
	}
	for _, bad := range []string{``, `null`, `[]`, `"text"`, `{`, `{} {}`, "{\"a\":\"\xff\"}", `{"a":}`} {
		_, err := r.Save(t.Context(), ada(), checkpoint.SaveRequest{Context: json.RawMessage(bad)})
		wantCode(t, err, guideway.CodeInvalid, bad)
		if strings.Contains(err.Error(), "Go value") {
			t.Errorf("%s: the error speaks of the program: %v", bad, err)
		}
	}
}

// TestSessions: ids of sessions are made safe and stay different; where there is
// none, each save begins one.
func TestSessions(t *testing.T) {
	t.Parallel()
	r := setup(t, checkpoint.ModeMemory)
	seen := map[string]string{}
	for _, given := range []string{"a", "a/b", "a_b", "a-b", "a b", "../../etc/passwd", "ünï", "", " ", "A", strings.Repeat("x", 500), strings.Repeat("x", 501)} {
		saved := r.save(t, given, `{}`)
		if !regexpSafe(saved.Session) {
			t.Errorf("%.20q became %q", given, saved.Session)
		}
		if other, there := seen[saved.Session]; there {
			t.Errorf("%.20q and %.20q are one session", given, other)
		}
		seen[saved.Session] = given
		if given != "" {
			if again := r.save(t, given, `{}`); again.Session != saved.Session || again.Parent != saved.ID {
				t.Errorf("%.20q is not found again", given)
			}
		}
	}
	one, two := r.save(t, "", `{"a":1}`), r.save(t, "", `{"a":1}`)
	if one.Session == two.Session || one.Session[:14] != two.Session[:14] {
		t.Errorf("two sessions that begin alike are %s and %s", one.Session, two.Session)
	}
}

func regexpSafe(id string) bool {
	return id != "" && len(id) <= 96 && strings.Trim(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == ""
}

// TestBranches: of two that begin from the same checkpoint the second makes a
// branch, which the answer, loads and lists tell of; nothing is lost.
func TestBranches(t *testing.T) {
	t.Parallel()
	onAll(t, func(t *testing.T, mode checkpoint.Mode) {
		r := setup(t, mode)
		expecting := func(head string) func(*checkpoint.SaveRequest) {
			return func(s *checkpoint.SaveRequest) { s.ExpectedHead = head }
		}
		first := r.save(t, "work", bulky(1))
		mine := r.save(t, "work", bulky(2), expecting(first.ID))
		theirs := r.save(t, "work", bulky(3), expecting(first.ID))
		if mine.Branch || !theirs.Branch || theirs.Parent != first.ID || theirs.Head != mine.ID || !warned(theirs.Warnings, checkpoint.WarnBranch) {
			t.Fatalf("the second one is %+v", theirs)
		}
		// Each goes on on its own branch, without a word.
		mine2 := r.save(t, "work", bulky(4), expecting(mine.ID))
		theirs2 := r.save(t, "work", bulky(5), expecting(theirs.ID))
		if mine2.Branch || theirs2.Branch {
			t.Errorf("a branch that goes on is another branch")
		}
		for id, n := range map[string]int{first.ID: 1, mine.ID: 2, theirs.ID: 3, mine2.ID: 4, theirs2.ID: 5} {
			r.wantContext(t, id, bulky(n))
		}
		loaded, err := r.Load(t.Context(), ada(), checkpoint.LoadRequest{Session: "work"})
		must(t, err)
		if loaded.ID != theirs2.ID || !slices.Equal(loaded.Heads, []string{mine2.ID}) {
			t.Errorf("loaded is %s, the other heads are %v", loaded.ID, loaded.Heads)
		}
		page, err := r.List(t.Context(), ada(), checkpoint.ListRequest{Session: "work"})
		must(t, err)
		if !slices.Equal(page.Heads, []string{theirs2.ID, mine2.ID}) {
			t.Errorf("the heads are %v", page.Heads)
		}
		_, err = r.Save(t.Context(), ada(), checkpoint.SaveRequest{Session: "work", Context: json.RawMessage(`{}`), ExpectedHead: "c_none"})
		wantCode(t, err, guideway.CodeNotFound, "a head that is not there")
		other := r.save(t, "play", `{}`)
		_, err = r.Save(t.Context(), ada(), checkpoint.SaveRequest{Session: "work", Context: json.RawMessage(`{}`), ExpectedHead: other.ID})
		wantCode(t, err, guideway.CodeNotFound, "the head of another session")
	})
}

func warned(list []checkpoint.Warning, code string) bool {
	return slices.ContainsFunc(list, func(w checkpoint.Warning) bool { return w.Code == code })
}

// TestUsersApart: nobody sees or touches another one's.
func TestUsersApart(t *testing.T) {
	t.Parallel()
	r := setup(t, checkpoint.ModeMemory)
	saved := r.save(t, "work", `{"secretive":"plans"}`)
	piece, err := r.Keep(t.Context(), ada(), "work", json.RawMessage(`"a part"`))
	must(t, err)
	eve := guideway.Principal{User: "eve"}
	_, err = r.Load(t.Context(), eve, checkpoint.LoadRequest{ID: saved.ID})
	wantCode(t, err, guideway.CodeNotFound, "load by id")
	_, err = r.Load(t.Context(), eve, checkpoint.LoadRequest{Session: "work"})
	wantCode(t, err, guideway.CodeNotFound, "load by session")
	_, err = r.Get(t.Context(), eve, saved.ID)
	wantCode(t, err, guideway.CodeNotFound, "get")
	_, err = r.Delete(t.Context(), eve, checkpoint.DeleteRequest{IDs: []string{saved.ID}})
	wantCode(t, err, guideway.CodeNotFound, "delete")
	_, err = r.Delete(t.Context(), eve, checkpoint.DeleteRequest{Session: "work"})
	wantCode(t, err, guideway.CodeNotFound, "delete the session")
	_, err = r.Export(t.Context(), eve, checkpoint.ExportRequest{Session: "work"})
	wantCode(t, err, guideway.CodeNotFound, "export")
	_, err = r.Diff(t.Context(), eve, saved.ID, saved.ID)
	wantCode(t, err, guideway.CodeNotFound, "diff")
	_, err = r.Recall(t.Context(), eve, piece.Ref)
	wantCode(t, err, guideway.CodeNotFound, "recall")
	_, err = r.Save(t.Context(), eve, checkpoint.SaveRequest{Session: "work", Context: json.RawMessage(`{}`), ExpectedHead: saved.ID})
	wantCode(t, err, guideway.CodeNotFound, "save behind it")
	for _, query := range []string{"", "plans"} {
		page, err := r.List(t.Context(), eve, checkpoint.ListRequest{Query: query})
		must(t, err)
		if len(page.Checkpoints) > 0 {
			t.Errorf("%q lists %v", query, page.Checkpoints)
		}
	}
	r.wantContext(t, saved.ID, `{"secretive":"plans"}`)
}

// TestKeys: a load gives the keys that were asked for, and says which are missing.
func TestKeys(t *testing.T) {
	t.Parallel()
	r := setup(t, checkpoint.ModeMemory)
	saved := r.save(t, "work", `{"a":{"deep":[1,2]},"b":"two","c":3}`)
	loaded, err := r.Load(t.Context(), ada(), checkpoint.LoadRequest{ID: saved.ID, Keys: []string{"c", "a", "z"}})
	must(t, err)
	if string(loaded.Context) != `{"a":{"deep":[1,2]},"c":3}` || !slices.Equal(loaded.Missing, []string{"z"}) {
		t.Errorf("it gives %s, missing %v", loaded.Context, loaded.Missing)
	}
}

// TestDelete: what depends on a checkpoint that goes stays readable, wherever in
// the line it was; the blobs of what went are gone.
func TestDelete(t *testing.T) {
	t.Parallel()
	onAll(t, func(t *testing.T, mode checkpoint.Mode) {
		for _, victims := range [][]int{{0}, {4}, {9}, {9, 8, 7}, {3, 4, 5}, {5, 4, 3}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}} {
			r := setup(t, mode)
			left := map[string]int{}
			var ids []string
			for i := range 10 {
				id := r.save(t, "work", bulky(i)).ID
				ids = append(ids, id)
				left[id] = i
			}
			var gone []string
			for _, v := range victims {
				gone = append(gone, ids[v])
				delete(left, ids[v])
			}
			deleted, err := r.Delete(t.Context(), ada(), checkpoint.DeleteRequest{IDs: gone})
			must(t, err)
			if !slices.Equal(deleted.Checkpoints, gone) || deleted.Erased {
				t.Errorf("%v: deleted is %+v", victims, deleted)
			}
			for id, i := range left {
				r.wantContext(t, id, bulky(i))
			}
			for _, id := range gone {
				_, err := r.Load(t.Context(), ada(), checkpoint.LoadRequest{ID: id})
				wantCode(t, err, guideway.CodeNotFound, "what was deleted")
			}
			if mode != checkpoint.ModeMemory {
				if n := len(r.blobFiles(t)); n != len(left) {
					t.Errorf("%v: there are %d blobs for %d checkpoints", victims, n, len(left))
				}
			}
			page, err := r.List(t.Context(), ada(), checkpoint.ListRequest{})
			must(t, err)
			if len(left) > 0 && len(page.Heads) != 1 {
				t.Errorf("%v: the heads are %v", victims, page.Heads)
			}
			// The line goes on.
			r.wantContext(t, r.save(t, "work", bulky(77)).ID, bulky(77))
		}
	})
}

// TestDeleteSession takes everything, pieces too, and the way is free for a new
// one.
func TestDeleteSession(t *testing.T) {
	t.Parallel()
	onAll(t, func(t *testing.T, mode checkpoint.Mode) {
		r := setup(t, mode, func(o *checkpoint.Options) {})
		for i := range 5 {
			r.save(t, "work", bulky(i))
		}
		piece, err := r.Keep(t.Context(), ada(), "work", json.RawMessage(`{"big":"value"}`))
		must(t, err)
		deleted, err := r.Delete(t.Context(), ada(), checkpoint.DeleteRequest{Session: "work"})
		must(t, err)
		if len(deleted.Checkpoints) != 5 {
			t.Errorf("deleted is %+v", deleted)
		}
		_, err = r.Recall(t.Context(), ada(), piece.Ref)
		wantCode(t, err, guideway.CodeNotFound, "a piece of a deleted session")
		again := r.save(t, "work", `{"new":true}`)
		if again.Number != 1 || again.Parent != "" {
			t.Errorf("the new beginning is %+v", again.Record)
		}
	})
}

// TestPieces: a part that was left out comes back byte for byte, is kept once, and
// does not show among the checkpoints.
func TestPieces(t *testing.T) {
	t.Parallel()
	onAll(t, func(t *testing.T, mode checkpoint.Mode) {
		r := setup(t, mode)
		part := json.RawMessage(`{ "b" : 1.50,  "a":"<&>" }`)
		piece, err := r.Keep(t.Context(), ada(), "work", part)
		must(t, err)
		again, err := r.Keep(t.Context(), ada(), "work", part)
		must(t, err)
		if piece != again {
			t.Errorf("kept twice it is %v and %v", piece, again)
		}
		elsewhere, err := r.Keep(t.Context(), ada(), "play", part)
		must(t, err)
		if elsewhere.Ref == piece.Ref {
			t.Error("two sessions share a part: deleting one would take it from the other")
		}
		r.save(t, "work", `{"x":1}`)
		back, err := reopen(t, r).Recall(t.Context(), ada(), piece.Ref)
		must(t, err)
		if string(back) != string(part) {
			t.Errorf("it comes back as %s", back)
		}
		page, err := r.List(t.Context(), ada(), checkpoint.ListRequest{})
		must(t, err)
		if len(page.Checkpoints) != 1 {
			t.Errorf("the list is %v", page.Checkpoints)
		}
		_, err = r.Load(t.Context(), ada(), checkpoint.LoadRequest{ID: piece.Ref})
		wantCode(t, err, guideway.CodeNotFound, "a piece as a checkpoint")
		report, err := r.Verify(t.Context())
		must(t, err)
		if report.Checkpoints != 1 || report.Pieces != 2 {
			t.Errorf("%d checkpoints and %d pieces are looked through", report.Checkpoints, report.Pieces)
		}
	})
}

// TestReadOnly refuses whatever changes something, and reads on.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	r := setup(t, checkpoint.ModeSQLite)
	saved := r.save(t, "work", `{"a":1}`)
	r = reopen(t, r, func(o *checkpoint.Options) { o.ReadOnly = true })
	ctx := t.Context()
	_, err := r.Save(ctx, ada(), checkpoint.SaveRequest{Session: "work", Context: json.RawMessage(`{}`)})
	wantCode(t, err, guideway.CodeForbidden, "save")
	_, err = r.Delete(ctx, ada(), checkpoint.DeleteRequest{Session: "work"})
	wantCode(t, err, guideway.CodeForbidden, "delete")
	_, err = r.Keep(ctx, ada(), "work", json.RawMessage(`1`))
	wantCode(t, err, guideway.CodeForbidden, "keep")
	_, err = r.Import(ctx, ada(), checkpoint.ImportRequest{})
	wantCode(t, err, guideway.CodeForbidden, "import")
	_, err = r.Cleanup(ctx, checkpoint.CleanupRequest{OlderThan: time.Hour})
	wantCode(t, err, guideway.CodeForbidden, "clean up")
	_, err = r.Maintain(ctx)
	wantCode(t, err, guideway.CodeForbidden, "maintain")
	_, err = r.Rebuild(ctx)
	wantCode(t, err, guideway.CodeForbidden, "rebuild")
	_, err = r.Sweep(ctx)
	wantCode(t, err, guideway.CodeForbidden, "sweep")
	r.wantContext(t, saved.ID, `{"a":1}`)
	_, err = r.Verify(ctx)
	must(t, err)
	_, err = r.Stats(ctx, "")
	must(t, err)
}

// TestBundle: a session carried to another store is the same there, and carried
// there twice it is there once.
func TestBundle(t *testing.T) {
	t.Parallel()
	from := setup(t, checkpoint.ModeSQLite)
	var ids []string
	for i := range 5 {
		ids = append(ids, from.save(t, "work", bulky(i), func(s *checkpoint.SaveRequest) { s.Name, s.Tags = fmt.Sprint("step ", i), []string{"b", "a"} }).ID)
	}
	branch := from.save(t, "work", bulky(9), func(s *checkpoint.SaveRequest) { s.ExpectedHead = ids[2] })
	text, err := from.Export(t.Context(), ada(), checkpoint.ExportRequest{Session: "work"})
	must(t, err)
	to := setup(t, checkpoint.ModeFiles)
	bob := guideway.Principal{User: "bob"}
	in, err := to.Import(t.Context(), bob, checkpoint.ImportRequest{Data: text})
	must(t, err)
	if !slices.Equal(in.Checkpoints, append(slices.Clone(ids), branch.ID)) || !slices.Equal(in.Sessions, []string{"work"}) {
		t.Fatalf("imported is %+v", in)
	}
	for i, id := range ids {
		loaded, err := to.Load(t.Context(), bob, checkpoint.LoadRequest{ID: id})
		must(t, err)
		if string(loaded.Context) != bulky(i) || loaded.Name != fmt.Sprint("step ", i) || !slices.Equal(loaded.Tags, []string{"a", "b"}) {
			t.Errorf("%d came as %+v", i, loaded.Record)
		}
	}
	got, err := to.Get(t.Context(), bob, branch.ID)
	must(t, err)
	if !got.Branch || got.Parent != ids[2] || !got.Created.Equal(branch.Created) {
		t.Errorf("the branch came as %+v", got)
	}
	in, err = to.Import(t.Context(), bob, checkpoint.ImportRequest{Data: text})
	must(t, err)
	if in.Skipped != 6 || len(in.Checkpoints) != 0 {
		t.Errorf("imported again is %+v", in)
	}
	to.Save(t.Context(), bob, checkpoint.SaveRequest{Session: "other", Context: json.RawMessage(`{}`)}) //nolint:errcheck // the next call finds it out
	_, err = to.Import(t.Context(), bob, checkpoint.ImportRequest{Data: text, Session: "other"})
	wantCode(t, err, guideway.CodeConflict, "an import behind what is there")
	in, err = to.Import(t.Context(), bob, checkpoint.ImportRequest{Data: text, Session: "third"})
	must(t, err)
	if len(in.Checkpoints) != 6 || in.Checkpoints[0] == ids[0] {
		t.Errorf("imported elsewhere is %+v", in)
	}
	for _, bad := range []string{``, `{}`, `{"format":"guideway-checkpoints","version":99}`, `{"format":"other","version":1}`} {
		_, err := to.Import(t.Context(), bob, checkpoint.ImportRequest{Data: []byte(bad)})
		wantCode(t, err, guideway.CodeInvalid, bad)
	}
}

// TestDiff tells what was added, removed and changed.
func TestDiff(t *testing.T) {
	t.Parallel()
	r := setup(t, checkpoint.ModeMemory)
	a := r.save(t, "work", `{"same":1,"gone":true,"list":[1,2,3],"deep":{"x/y":"old"},"kind":1}`)
	b := r.save(t, "work", `{"same":1,"new":null,"list":[0,1,2,3],"deep":{"x/y":"`+strings.Repeat("long", 200)+`"},"kind":"text"}`)
	d, err := r.Diff(t.Context(), ada(), a.ID, b.ID)
	must(t, err)
	got := map[string]string{}
	for _, c := range d.Changes {
		got[c.Path] = c.Op
	}
	want := map[string]string{"/deep/x~1y": "changed", "/gone": "removed", "/kind": "changed", "/list/0": "added", "/new": "added"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, c := range d.Changes {
		if len(c.After) > 500 || (c.After != nil && !json.Valid(c.After)) {
			t.Errorf("%s shows %s", c.Path, c.After)
		}
	}
}

// TestAudit: saves, loads, deletions and exports are noted, without contents.
func TestAudit(t *testing.T) {
	t.Parallel()
	onAll(t, func(t *testing.T, mode checkpoint.Mode) {
		r := setup(t, mode)
		saved := r.save(t, "work", `{"a":"unlikely-word"}`)
		r.load(t, saved.ID)
		_, err := r.Export(t.Context(), ada(), checkpoint.ExportRequest{ID: saved.ID})
		must(t, err)
		_, err = r.Delete(t.Context(), ada(), checkpoint.DeleteRequest{IDs: []string{saved.ID}})
		must(t, err)
		must(t, r.Close())
		notes, err := reopen(t, r).Audit(t.Context(), ada(), 0)
		must(t, err)
		var actions []string
		for _, e := range notes {
			actions = append(actions, e.Action)
			if e.Session != "work" || e.Client != "suite" || strings.Contains(e.Detail, "unlikely") {
				t.Errorf("an entry is %+v", e)
			}
		}
		slices.Sort(actions)
		if !slices.Equal(actions, []string{"delete", "export", "load", "save"}) {
			t.Errorf("noted is %v", actions)
		}
	})
}

// TestModes: where nothing lasts every answer says so.
func TestModes(t *testing.T) {
	t.Parallel()
	r := setup(t, checkpoint.ModeMemory, func(o *checkpoint.Options) { o.Store.Note = "the directory cannot be written" })
	saved := r.save(t, "work", `{}`)
	loaded := r.load(t, saved.ID)
	for _, list := range [][]checkpoint.Warning{saved.Warnings, loaded.Warnings} {
		if len(list) != 1 || list[0].Code != checkpoint.WarnMemory || !strings.Contains(list[0].Message, "cannot be written") {
			t.Errorf("the warnings are %+v", list)
		}
	}
	if saved.Store.Mode != checkpoint.ModeMemory || loaded.Store.Note == "" {
		t.Errorf("the store is %+v", saved.Store)
	}
}

// TestFileModes: directories and files are this user's alone.
func TestFileModes(t *testing.T) {
	t.Parallel()
	r := setup(t, checkpoint.ModeFiles)
	r.save(t, "work", `{}`)
	must(t, walk(r.dir, func(path string, info os.FileInfo) {
		want := os.FileMode(0o600)
		if info.IsDir() {
			want = 0o700
		}
		if path != r.dir && info.Mode().Perm() != want {
			t.Errorf("%s has the mode %v", path, info.Mode().Perm())
		}
	}))
	if _, err := r.blobs.Get(t.Context(), blob.NameOf([]byte("none"))); guideway.ErrorCode(err) != guideway.CodeNotFound {
		t.Errorf("a blob that is not there: %v", err)
	}
}

// TestWordsOfAll: a long list does not keep the others from being found, and its
// last entry is found as its first is.
func TestWordsOfAll(t *testing.T) {
	t.Parallel()
	r := setup(t, checkpoint.ModeSQLite)
	code := make([]string, 2000)
	for i := range code {
		code[i] = fmt.Sprintf("func handle%d(w%d writer)", i, i)
	}
	code[0], code[1999] = "package gatehouse", "final brace"
	text, err := json.Marshal(map[string]any{"code": code, "findings": []string{"nothing", "the hinge squeaks"}, "zeal": map[string]any{"goal": "mend the portcullis"}})
	must(t, err)
	r.save(t, "work", string(text))
	for _, query := range []string{"gatehouse", "brace", "hinges", "portcullis", "zeal findings"} {
		page, err := r.List(t.Context(), ada(), checkpoint.ListRequest{Query: query})
		must(t, err)
		if len(page.Checkpoints) != 1 || page.Partial {
			t.Errorf("%q finds %d (partial: %v)", query, len(page.Checkpoints), page.Partial)
		}
	}
}
