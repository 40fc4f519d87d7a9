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

// TestRoundTrip checks that every checkpoint of a series, whole or delta, can be loaded by
// the service that saved it and by another one.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, mode checkpoint.Mode) {
		r := openRig(t, mode)
		var ids []string
		for i := range 70 {
			saved := r.mustSave(t, "work", bulkyContext(i))
			ids = append(ids, saved.ID)
		}
		r.FinishFolds()
		for _, r := range []*rig{r, reopenRig(t, r)} {
			for i, id := range ids {
				r.wantContext(t, id, bulkyContext(i))
			}
			last, err := r.Load(t.Context(), testPrincipal(), checkpoint.LoadRequest{Session: "work"})
			mustSucceed(t, err)
			if last.ID != ids[len(ids)-1] {
				t.Errorf("the last checkpoint is %s, want %s", last.ID, ids[len(ids)-1])
			}
		}
		history, err := r.index.History(t.Context(), checkpoint.SeriesKey{User: "ada", Session: "work"}, checkpoint.History{Oldest: true})
		mustSucceed(t, err)
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

// TestCanonical checks that the loaded JSON has sorted keys and unchanged numbers, and that
// a context that is not a JSON object is refused.
func TestCanonical(t *testing.T) {
	t.Parallel()
	r := openRig(t, checkpoint.ModeMemory)
	for given, expected := range map[string]string{
		`{"b":1, "a":{"d":[1,2.50,1e400],"c":null}}`: `{"a":{"c":null,"d":[1,2.50,1e400]},"b":1}`,
		`{"n":12345678901234567890123}`:              `{"n":12345678901234567890123}`,
		"{\"t\":\"<&>é🙂\u2028\"}":                    "{\"t\":\"<&>é🙂\\u2028\"}",
		`{}`:                                         `{}`,
		`{"a":1,"a":2}`:                              `{"a":2}`,
	} {
		r.wantContext(t, r.mustSave(t, "", given).ID, expected)
	}
	for _, bad := range []string{``, `null`, `[]`, `"text"`, `{`, `{} {}`, "{\"a\":\"\xff\"}", `{"a":}`} {
		_, err := r.Save(t.Context(), testPrincipal(), checkpoint.SaveRequest{Context: json.RawMessage(bad)})
		wantCode(t, err, guideway.CodeInvalid, bad)
		if strings.Contains(err.Error(), "Go value") {
			t.Errorf("%s: the error mentions Go: %v", bad, err)
		}
	}
}

// TestSessions checks that different session ids stay different after unsafe characters are
// removed, and that each save without a session id begins a session.
func TestSessions(t *testing.T) {
	t.Parallel()
	r := openRig(t, checkpoint.ModeMemory)
	seen := map[string]string{}
	for _, given := range []string{"a", "a/b", "a_b", "a-b", "a b", "../../etc/passwd", "ünï", "", " ", "A", strings.Repeat("x", 500), strings.Repeat("x", 501)} {
		saved := r.mustSave(t, given, `{}`)
		if !regexpSafe(saved.Session) {
			t.Errorf("%.20q became %q", given, saved.Session)
		}
		if other, there := seen[saved.Session]; there {
			t.Errorf("%.20q and %.20q have the same session", given, other)
		}
		seen[saved.Session] = given
		if given != "" {
			if again := r.mustSave(t, given, `{}`); again.Session != saved.Session || again.Parent != saved.ID {
				t.Errorf("the session of %.20q is not found again", given)
			}
		}
	}
	one, two := r.mustSave(t, "", `{"a":1}`), r.mustSave(t, "", `{"a":1}`)
	if one.Session == two.Session || one.Session[:14] != two.Session[:14] {
		t.Errorf("two sessions that begin with the same context are %s and %s", one.Session, two.Session)
	}
}

func regexpSafe(id string) bool {
	return id != "" && len(id) <= 96 && strings.Trim(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == ""
}

// TestBranches checks that the second of two saves with the same parent begins a branch,
// which results, loads and lists report, and that no checkpoint is lost.
func TestBranches(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, mode checkpoint.Mode) {
		r := openRig(t, mode)
		expecting := func(head string) func(*checkpoint.SaveRequest) {
			return func(s *checkpoint.SaveRequest) { s.ExpectedHead = head }
		}
		first := r.mustSave(t, "work", bulkyContext(1))
		mine := r.mustSave(t, "work", bulkyContext(2), expecting(first.ID))
		theirs := r.mustSave(t, "work", bulkyContext(3), expecting(first.ID))
		if mine.Branch || !theirs.Branch || theirs.Parent != first.ID || theirs.Head != mine.ID || !hasWarning(theirs.Warnings, checkpoint.WarnBranch) {
			t.Fatalf("the second checkpoint is %+v", theirs)
		}
		// Each branch continues without a warning.
		mine2 := r.mustSave(t, "work", bulkyContext(4), expecting(mine.ID))
		theirs2 := r.mustSave(t, "work", bulkyContext(5), expecting(theirs.ID))
		if mine2.Branch || theirs2.Branch {
			t.Errorf("a continued branch begins another branch")
		}
		for id, n := range map[string]int{first.ID: 1, mine.ID: 2, theirs.ID: 3, mine2.ID: 4, theirs2.ID: 5} {
			r.wantContext(t, id, bulkyContext(n))
		}
		loaded, err := r.Load(t.Context(), testPrincipal(), checkpoint.LoadRequest{Session: "work"})
		mustSucceed(t, err)
		if loaded.ID != theirs2.ID || !slices.Equal(loaded.Heads, []string{mine2.ID}) {
			t.Errorf("Load returned %s, the other heads are %v", loaded.ID, loaded.Heads)
		}
		page, err := r.List(t.Context(), testPrincipal(), checkpoint.ListRequest{Session: "work"})
		mustSucceed(t, err)
		if !slices.Equal(page.Heads, []string{theirs2.ID, mine2.ID}) {
			t.Errorf("the heads are %v", page.Heads)
		}
		_, err = r.Save(t.Context(), testPrincipal(), checkpoint.SaveRequest{Session: "work", Context: json.RawMessage(`{}`), ExpectedHead: "c_none"})
		wantCode(t, err, guideway.CodeNotFound, "a missing head")
		other := r.mustSave(t, "play", `{}`)
		_, err = r.Save(t.Context(), testPrincipal(), checkpoint.SaveRequest{Session: "work", Context: json.RawMessage(`{}`), ExpectedHead: other.ID})
		wantCode(t, err, guideway.CodeNotFound, "the head of another session")
	})
}

func hasWarning(list []checkpoint.Warning, code string) bool {
	return slices.ContainsFunc(list, func(w checkpoint.Warning) bool { return w.Code == code })
}

// TestUsersAreIsolated checks that users cannot access each other's checkpoints.
func TestUsersAreIsolated(t *testing.T) {
	t.Parallel()
	r := openRig(t, checkpoint.ModeMemory)
	saved := r.mustSave(t, "work", `{"secretive":"plans"}`)
	fragment, err := r.StoreFragment(t.Context(), testPrincipal(), "work", json.RawMessage(`"a part"`))
	mustSucceed(t, err)
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
	_, err = r.Load(t.Context(), eve, checkpoint.LoadRequest{ID: fragment.Ref})
	wantCode(t, err, guideway.CodeNotFound, "recall")
	_, err = r.Save(t.Context(), eve, checkpoint.SaveRequest{Session: "work", Context: json.RawMessage(`{}`), ExpectedHead: saved.ID})
	wantCode(t, err, guideway.CodeNotFound, "save after it")
	for _, query := range []string{"", "plans"} {
		page, err := r.List(t.Context(), eve, checkpoint.ListRequest{Query: query})
		mustSucceed(t, err)
		if len(page.Checkpoints) > 0 {
			t.Errorf("%q lists %v", query, page.Checkpoints)
		}
	}
	r.wantContext(t, saved.ID, `{"secretive":"plans"}`)
}

// TestKeys checks that a load returns the requested keys and reports missing ones.
func TestKeys(t *testing.T) {
	t.Parallel()
	r := openRig(t, checkpoint.ModeMemory)
	saved := r.mustSave(t, "work", `{"a":{"deep":[1,2]},"b":"two","c":3}`)
	loaded, err := r.Load(t.Context(), testPrincipal(), checkpoint.LoadRequest{ID: saved.ID, Keys: []string{"c", "a", "z"}})
	mustSucceed(t, err)
	if string(loaded.Context) != `{"a":{"deep":[1,2]},"c":3}` || !slices.Equal(loaded.Missing, []string{"z"}) {
		t.Errorf("Load returned %s, missing %v", loaded.Context, loaded.Missing)
	}
}

// TestDelete checks that checkpoints that depend on a deleted checkpoint stay readable, and
// that the blobs of the deleted checkpoint are removed.
func TestDelete(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, mode checkpoint.Mode) {
		for _, victims := range [][]int{{0}, {4}, {9}, {9, 8, 7}, {3, 4, 5}, {5, 4, 3}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}} {
			r := openRig(t, mode)
			left := map[string]int{}
			var ids []string
			for i := range 10 {
				id := r.mustSave(t, "work", bulkyContext(i)).ID
				ids = append(ids, id)
				left[id] = i
			}
			var gone []string
			for _, v := range victims {
				gone = append(gone, ids[v])
				delete(left, ids[v])
			}
			deleted, err := r.Delete(t.Context(), testPrincipal(), checkpoint.DeleteRequest{IDs: gone})
			mustSucceed(t, err)
			if !slices.Equal(deleted.Checkpoints, gone) || deleted.Erased {
				t.Errorf("%v: Delete returned %+v", victims, deleted)
			}
			for id, i := range left {
				r.wantContext(t, id, bulkyContext(i))
			}
			for _, id := range gone {
				_, err := r.Load(t.Context(), testPrincipal(), checkpoint.LoadRequest{ID: id})
				wantCode(t, err, guideway.CodeNotFound, "a deleted checkpoint")
			}
			if mode != checkpoint.ModeMemory {
				if n := len(r.blobFiles(t)); n != len(left) {
					t.Errorf("%v: there are %d blobs for %d checkpoints", victims, n, len(left))
				}
			}
			page, err := r.List(t.Context(), testPrincipal(), checkpoint.ListRequest{})
			mustSucceed(t, err)
			if len(left) > 0 && len(page.Heads) != 1 {
				t.Errorf("%v: the heads are %v", victims, page.Heads)
			}
			// A save to the series still succeeds.
			r.wantContext(t, r.mustSave(t, "work", bulkyContext(77)).ID, bulkyContext(77))
		}
	})
}

// TestDeleteOneKind checks that a request with neither checkpoints nor a session, or with
// both, is refused and deletes nothing.
func TestDeleteOneKind(t *testing.T) {
	t.Parallel()
	r := openRig(t, checkpoint.ModeSQLite)
	id := r.mustSave(t, "work", bulkyContext(1)).ID
	for name, request := range map[string]checkpoint.DeleteRequest{
		"neither": {}, "an empty list": {IDs: []string{}}, "both": {IDs: []string{id}, Session: "work"},
	} {
		_, err := r.Delete(t.Context(), testPrincipal(), request)
		wantCode(t, err, guideway.CodeInvalid, name)
		r.wantContext(t, id, bulkyContext(1))
	}
	// If one of several checkpoints does not exist, none is deleted.
	_, err := r.Delete(t.Context(), testPrincipal(), checkpoint.DeleteRequest{IDs: []string{id, "none"}})
	wantCode(t, err, guideway.CodeNotFound, "an unknown checkpoint")
	r.wantContext(t, id, bulkyContext(1))
}

// TestDeleteSession checks that a session is deleted with its fragments, and that its id can
// be used again.
func TestDeleteSession(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, mode checkpoint.Mode) {
		r := openRig(t, mode, func(o *checkpoint.Options) {})
		for i := range 5 {
			r.mustSave(t, "work", bulkyContext(i))
		}
		fragment, err := r.StoreFragment(t.Context(), testPrincipal(), "work", json.RawMessage(`{"big":"value"}`))
		mustSucceed(t, err)
		deleted, err := r.Delete(t.Context(), testPrincipal(), checkpoint.DeleteRequest{Session: "work"})
		mustSucceed(t, err)
		if len(deleted.Checkpoints) != 5 {
			t.Errorf("Delete returned %+v", deleted)
		}
		_, err = r.Load(t.Context(), testPrincipal(), checkpoint.LoadRequest{ID: fragment.Ref})
		wantCode(t, err, guideway.CodeNotFound, "a fragment of a deleted session")
		again := r.mustSave(t, "work", `{"new":true}`)
		if again.Number != 1 || again.Parent != "" {
			t.Errorf("the new first checkpoint is %+v", again.Record)
		}
	})
}

// TestRenamedSession checks that a save under an id that is not allowed as a file name
// returns the id under which the session is stored, and that both ids load it.
func TestRenamedSession(t *testing.T) {
	t.Parallel()
	r := openRig(t, checkpoint.ModeMemory)
	saved := r.mustSave(t, "../x", `{"a":1}`)
	if len(saved.Warnings) == 0 || !strings.Contains(fmt.Sprint(saved.Warnings), checkpoint.WarnRenamed+` the session "../x" is stored as `+saved.Session) {
		t.Errorf("warnings %+v", saved.Warnings)
	}
	for _, session := range []string{"../x", saved.Session} {
		_, err := r.Load(t.Context(), testPrincipal(), checkpoint.LoadRequest{Session: session})
		mustSucceed(t, err)
	}
}

// TestFragments checks that a part is stored byte for byte and once per session, is listed
// among the checkpoints only on request, and can be deleted.
func TestFragments(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, mode checkpoint.Mode) {
		r := openRig(t, mode)
		part := json.RawMessage(`{ "b" : 1.50,  "a":"<&>" }`)
		fragment, err := r.StoreFragment(t.Context(), testPrincipal(), "work", part)
		mustSucceed(t, err)
		again, err := r.StoreFragment(t.Context(), testPrincipal(), "work", part)
		mustSucceed(t, err)
		if fragment != again {
			t.Errorf("stored twice, the references are %v and %v", fragment, again)
		}
		elsewhere, err := r.StoreFragment(t.Context(), testPrincipal(), "play", part)
		mustSucceed(t, err)
		if elsewhere.Ref == fragment.Ref {
			t.Error("two sessions share a part, so deleting one would remove it from the other")
		}
		r.mustSave(t, "work", `{"x":1}`)
		back, err := reopenRig(t, r).Load(t.Context(), testPrincipal(), checkpoint.LoadRequest{ID: fragment.Ref})
		mustSucceed(t, err)
		if string(back.Context) != string(part) {
			t.Errorf("Load returned %s", back.Context)
		}
		page, err := r.List(t.Context(), testPrincipal(), checkpoint.ListRequest{})
		mustSucceed(t, err)
		if len(page.Checkpoints) != 1 {
			t.Errorf("the list is %v", page.Checkpoints)
		}
		page, err = r.List(t.Context(), testPrincipal(), checkpoint.ListRequest{Session: "work", Reduced: true})
		mustSucceed(t, err)
		if len(page.Checkpoints) != 2 || len(page.Heads) != 1 {
			t.Errorf("the list with fragments is %v", page)
		}
		report, err := r.Verify(t.Context())
		mustSucceed(t, err)
		if report.Checkpoints != 1 || report.Fragments != 2 {
			t.Errorf("%d checkpoints and %d fragments were verified", report.Checkpoints, report.Fragments)
		}
		deleted, err := r.Delete(t.Context(), testPrincipal(), checkpoint.DeleteRequest{IDs: []string{fragment.Ref}})
		mustSucceed(t, err)
		if len(deleted.Reduced) != 1 || len(deleted.Checkpoints) != 0 || deleted.Stored == 0 {
			t.Errorf("Delete returned %+v", deleted)
		}
		_, err = r.Load(t.Context(), testPrincipal(), checkpoint.LoadRequest{ID: fragment.Ref})
		wantCode(t, err, guideway.CodeNotFound, "a deleted fragment")
		_, err = r.Load(t.Context(), testPrincipal(), checkpoint.LoadRequest{ID: elsewhere.Ref})
		mustSucceed(t, err)
	})
}

// TestReadOnly checks that changes are refused and reads work.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	r := openRig(t, checkpoint.ModeSQLite)
	saved := r.mustSave(t, "work", `{"a":1}`)
	r = reopenRig(t, r, func(o *checkpoint.Options) { o.ReadOnly = true })
	ctx := t.Context()
	_, err := r.Save(ctx, testPrincipal(), checkpoint.SaveRequest{Session: "work", Context: json.RawMessage(`{}`)})
	wantCode(t, err, guideway.CodeForbidden, "save")
	_, err = r.Delete(ctx, testPrincipal(), checkpoint.DeleteRequest{Session: "work"})
	wantCode(t, err, guideway.CodeForbidden, "delete")
	_, err = r.StoreFragment(ctx, testPrincipal(), "work", json.RawMessage(`1`))
	wantCode(t, err, guideway.CodeForbidden, "keep")
	_, err = r.Import(ctx, testPrincipal(), checkpoint.ImportRequest{})
	wantCode(t, err, guideway.CodeForbidden, "import")
	_, err = r.Cleanup(ctx, checkpoint.CleanupRequest{OlderThan: time.Hour})
	wantCode(t, err, guideway.CodeForbidden, "clean up")
	_, err = r.Maintain(ctx)
	wantCode(t, err, guideway.CodeForbidden, "maintain")
	_, err = r.Rebuild(ctx)
	wantCode(t, err, guideway.CodeForbidden, "rebuild")
	r.wantContext(t, saved.ID, `{"a":1}`)
	_, err = r.Verify(ctx)
	mustSucceed(t, err)
	_, err = r.Stats(ctx, "")
	mustSucceed(t, err)
}

// TestBundle checks that an imported session equals the exported one, that a second import
// changes nothing, and that conflicting and invalid imports are refused.
func TestBundle(t *testing.T) {
	t.Parallel()
	from := openRig(t, checkpoint.ModeSQLite)
	var ids []string
	for i := range 5 {
		ids = append(ids, from.mustSave(t, "work", bulkyContext(i), func(s *checkpoint.SaveRequest) { s.Name, s.Tags = fmt.Sprint("step ", i), []string{"b", "a"} }).ID)
	}
	branch := from.mustSave(t, "work", bulkyContext(9), func(s *checkpoint.SaveRequest) { s.ExpectedHead = ids[2] })
	text, err := from.Export(t.Context(), testPrincipal(), checkpoint.ExportRequest{Session: "work"})
	mustSucceed(t, err)
	to := openRig(t, checkpoint.ModeFiles)
	bob := guideway.Principal{User: "bob"}
	in, err := to.Import(t.Context(), bob, checkpoint.ImportRequest{Data: text})
	mustSucceed(t, err)
	if !slices.Equal(in.Checkpoints, append(slices.Clone(ids), branch.ID)) || !slices.Equal(in.Sessions, []string{"work"}) {
		t.Fatalf("Import returned %+v", in)
	}
	for i, id := range ids {
		loaded, err := to.Load(t.Context(), bob, checkpoint.LoadRequest{ID: id})
		mustSucceed(t, err)
		if string(loaded.Context) != bulkyContext(i) || loaded.Name != fmt.Sprint("step ", i) || !slices.Equal(loaded.Tags, []string{"a", "b"}) {
			t.Errorf("checkpoint %d was imported as %+v", i, loaded.Record)
		}
	}
	got, err := to.Get(t.Context(), bob, branch.ID)
	mustSucceed(t, err)
	if !got.Branch || got.Parent != ids[2] || !got.Created.Equal(branch.Created) {
		t.Errorf("the branch was imported as %+v", got)
	}
	in, err = to.Import(t.Context(), bob, checkpoint.ImportRequest{Data: text})
	mustSucceed(t, err)
	if in.Skipped != 6 || len(in.Checkpoints) != 0 {
		t.Errorf("the second Import returned %+v", in)
	}
	to.Save(t.Context(), bob, checkpoint.SaveRequest{Session: "other", Context: json.RawMessage(`{}`)}) //nolint:errcheck // the next call shows whether the save succeeded
	_, err = to.Import(t.Context(), bob, checkpoint.ImportRequest{Data: text, Session: "other"})
	wantCode(t, err, guideway.CodeConflict, "an import after existing checkpoints")
	in, err = to.Import(t.Context(), bob, checkpoint.ImportRequest{Data: text, Session: "third"})
	mustSucceed(t, err)
	if len(in.Checkpoints) != 6 || in.Checkpoints[0] == ids[0] {
		t.Errorf("Import into another session returned %+v", in)
	}
	for _, bad := range []string{``, `{}`, `{"format":"guideway-checkpoints","version":99}`, `{"format":"other","version":1}`} {
		_, err := to.Import(t.Context(), bob, checkpoint.ImportRequest{Data: []byte(bad)})
		wantCode(t, err, guideway.CodeInvalid, bad)
	}
}

// TestDiff checks that a diff reports added, removed and changed values.
func TestDiff(t *testing.T) {
	t.Parallel()
	r := openRig(t, checkpoint.ModeMemory)
	a := r.mustSave(t, "work", `{"same":1,"gone":true,"list":[1,2,3],"deep":{"x/y":"old"},"kind":1}`)
	b := r.mustSave(t, "work", `{"same":1,"new":null,"list":[0,1,2,3],"deep":{"x/y":"`+strings.Repeat("long", 200)+`"},"kind":"text"}`)
	d, err := r.Diff(t.Context(), testPrincipal(), a.ID, b.ID)
	mustSucceed(t, err)
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

// TestAudit checks that saves, loads, deletions and exports are logged without contents.
func TestAudit(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, mode checkpoint.Mode) {
		r := openRig(t, mode)
		saved := r.mustSave(t, "work", `{"a":"unlikely-word"}`)
		r.mustLoad(t, saved.ID)
		_, err := r.Export(t.Context(), testPrincipal(), checkpoint.ExportRequest{ID: saved.ID})
		mustSucceed(t, err)
		_, err = r.Delete(t.Context(), testPrincipal(), checkpoint.DeleteRequest{IDs: []string{saved.ID}})
		mustSucceed(t, err)
		mustSucceed(t, r.Close())
		notes, err := reopenRig(t, r).Audit(t.Context(), testPrincipal(), 0)
		mustSucceed(t, err)
		var actions []string
		for _, e := range notes {
			actions = append(actions, e.Action)
			if e.Session != "work" || e.Client != "suite" || strings.Contains(e.Detail, "unlikely") {
				t.Errorf("an entry is %+v", e)
			}
		}
		slices.Sort(actions)
		if !slices.Equal(actions, []string{"delete", "export", "load", "save"}) {
			t.Errorf("the audit log has %v", actions)
		}
	})
}

// TestVolatileWarning checks the warning of a volatile store.
func TestVolatileWarning(t *testing.T) {
	t.Parallel()
	r := openRig(t, checkpoint.ModeMemory, func(o *checkpoint.Options) { o.Store.Note = "the directory cannot be written" })
	saved := r.mustSave(t, "work", `{}`)
	loaded := r.mustLoad(t, saved.ID)
	for _, list := range [][]checkpoint.Warning{saved.Warnings, loaded.Warnings} {
		if len(list) != 1 || list[0].Code != checkpoint.WarnMemory || !strings.Contains(list[0].Message, "cannot be written") {
			t.Errorf("the warnings are %+v", list)
		}
	}
	if saved.Store.Mode != checkpoint.ModeMemory || loaded.Store.Note == "" {
		t.Errorf("the store is %+v", saved.Store)
	}
}

// TestFileModes checks that only the user can access directories and files.
func TestFileModes(t *testing.T) {
	t.Parallel()
	r := openRig(t, checkpoint.ModeFiles)
	r.mustSave(t, "work", `{}`)
	mustSucceed(t, walkFiles(r.dir, func(path string, info os.FileInfo) {
		want := os.FileMode(0o600)
		if info.IsDir() {
			want = 0o700
		}
		if path != r.dir && info.Mode().Perm() != want {
			t.Errorf("%s has the mode %v", path, info.Mode().Perm())
		}
	}))
	if _, err := r.blobs.Get(t.Context(), blob.NameOf([]byte("none"))); guideway.ErrorCode(err) != guideway.CodeNotFound {
		t.Errorf("Get of a missing blob returned %v", err)
	}
}

// TestWordsOfLongLists checks that a long list does not displace the words of other values,
// and that its first and last entries are found.
func TestWordsOfLongLists(t *testing.T) {
	t.Parallel()
	r := openRig(t, checkpoint.ModeSQLite)
	code := make([]string, 2000)
	for i := range code {
		code[i] = fmt.Sprintf("func handle%d(w%d writer)", i, i)
	}
	code[0], code[1999] = "package gatehouse", "final brace"
	text, err := json.Marshal(map[string]any{"code": code, "findings": []string{"nothing", "the hinge squeaks"}, "zeal": map[string]any{"goal": "mend the portcullis"}})
	mustSucceed(t, err)
	r.mustSave(t, "work", string(text))
	for _, query := range []string{"gatehouse", "brace", "hinges", "portcullis", "zeal findings"} {
		page, err := r.List(t.Context(), testPrincipal(), checkpoint.ListRequest{Query: query})
		mustSucceed(t, err)
		if len(page.Checkpoints) != 1 || page.Partial {
			t.Errorf("%q finds %d (partial: %v)", query, len(page.Checkpoints), page.Partial)
		}
	}
}
