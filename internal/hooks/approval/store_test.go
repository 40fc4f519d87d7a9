package approval_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/hooks/approval"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func openStore(t *testing.T, path, key string) *approval.Store {
	t.Helper()
	s, err := approval.Open(approval.Options{Path: path, Key: []byte(key), Now: func() time.Time { return time.UnixMilli(1_700_000_000_123) }})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func newRecord(subject, hash string) approval.Record {
	return approval.Record{
		Kind: approval.KindHookGraph, Source: "project:/p", Subject: subject, Hash: hash, Who: "me",
		Scope: json.RawMessage(`{"type":"tools/call","bindings":[{"tool":"<a>"}]}`),
	}
}

// A record is stored unchanged, and it approves only the same content of the same source.
// An approval of new content replaces it.
func TestPutAndRemove(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "data", "approvals.json")
	s := openStore(t, path, "key")
	if rs, err := s.List(); err != nil || len(rs) != 0 {
		t.Fatal(rs, err)
	}
	for _, r := range []approval.Record{newRecord("b", "1"), newRecord("a", "1"), newRecord("b", "2")} {
		if _, err := s.Put(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	rs, err := openStore(t, path, "key").List()
	if err != nil {
		t.Fatal(err)
	}
	want := approval.Records{newRecord("a", "1"), newRecord("b", "2")}
	for i := range want {
		want[i].When = time.UnixMilli(1_700_000_000_123).UTC()
	}
	same := cmp.Transformer("raw", func(raw json.RawMessage) (v any) { _ = json.Unmarshal(raw, &v); return v })
	if diff := cmp.Diff(want, rs, same); diff != "" {
		t.Error(diff)
	}
	b := rs[1].Key()
	other := b
	other.Source = "project:/other"
	if !rs.Approves(b, "2") || rs.Approves(b, "1") || rs.Approves(b, "") || rs.Approves(other, "2") {
		t.Error("different content, or the same content of a different source, is approved")
	}
	if len(rs.Of("other")) != 0 || len(rs.Of(approval.KindHookGraph)) != 2 {
		t.Error("Of returned records of a different kind")
	}
	for _, want := range []bool{true, false} {
		if ok, err := s.Remove(t.Context(), b); ok != want || err != nil {
			t.Error(ok, err)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info.Mode(), err)
	}
	if _, err := s.Put(t.Context(), approval.Record{Kind: "x", Subject: "y", Who: "me"}); err == nil {
		t.Error("an approval without a hash was stored")
	}
}

// Editing the file without the key invalidates it: every read is an error, and it cannot be
// overwritten.
func TestEditedFileIsInvalid(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(string) string{
		"hash":  func(s string) string { return strings.Replace(s, `"hash": "1"`, `"hash": "2"`, 1) },
		"scope": func(s string) string { return strings.Replace(s, "tools/call", "tools/list", 1) },
		"who":   func(s string) string { return strings.Replace(s, `"me"`, `"you"`, 1) },
		"removed": func(s string) string {
			before, _, _ := strings.Cut(s, `"records"`)
			_, after, _ := strings.Cut(s, `"mac"`)
			return before + `"records": [], "mac"` + after
		},
		"cut off": func(s string) string { return s[:len(s)/2] },
		"empty":   func(string) string { return "" },
		"more":    func(s string) string { return strings.Replace(s, `"form"`, `"extra": 1, "form"`, 1) },
		"form":    func(s string) string { return strings.Replace(s, `"form": 1`, `"form": 2`, 1) },
		"no form": func(s string) string { return strings.Replace(s, `"form": 1,`, "", 1) },
		"end":     func(s string) string { return s + "{}" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "approvals.json")
			s := openStore(t, path, "key")
			if _, err := s.Put(t.Context(), newRecord("a", "1")); err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			edited := edit(string(text))
			if edited == string(text) {
				t.Fatal("the test did not edit the file")
			}
			if err := os.WriteFile(path, []byte(edited), 0o600); err != nil {
				t.Fatal(err)
			}
			if rs, err := s.List(); guideway.ErrorCode(err) != guideway.CodeForbidden || rs != nil || guideway.ErrorFix(err) == "" {
				t.Errorf("read %v, %v", rs, err)
			}
			if _, err := s.Put(t.Context(), newRecord("b", "1")); guideway.ErrorCode(err) != guideway.CodeForbidden {
				t.Errorf("Put on an edited file returns %v, want CodeForbidden", err)
			}
		})
	}
	path := filepath.Join(t.TempDir(), "approvals.json")
	if _, err := openStore(t, path, "key").Put(t.Context(), newRecord("a", "1")); err != nil {
		t.Fatal(err)
	}
	if _, err := openStore(t, path, "other").List(); guideway.ErrorCode(err) != guideway.CodeForbidden {
		t.Errorf("List with a different key returns %v, want CodeForbidden", err)
	}
}

// TestNewerFormat checks that the error for a file of a newer version names its format, also
// if it has other fields, and that the error for a file that cannot be parsed names the
// cause.
func TestNewerFormat(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct{ message, fix string }{
		`{"form": 2, "entries": []}`: {"has the format 2, but", "a later one"},
		`{"form": 0, "entries": []}`: {"has the unsupported format 0", "repeat the approvals"},
		`{"form": 1, "entries": []}`: {`cannot be parsed: json: unknown field "entries"`, "repeat the approvals"},
		`{"form": `:                  {"cannot be parsed: unexpected end of JSON input", "repeat the approvals"},
	} {
		path := filepath.Join(t.TempDir(), "approvals.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := openStore(t, path, "key").List()
		if err == nil || !strings.Contains(err.Error(), want.message) || !strings.Contains(guideway.ErrorFix(err), want.fix) {
			t.Errorf("%s: %v, fix %q", text, err, guideway.ErrorFix(err))
		}
	}
}

// After concurrent writes, all records are stored.
func TestConcurrentWriters(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "approvals.json")
	var writers sync.WaitGroup
	for i := range 8 {
		writers.Go(func() {
			if _, err := openStore(t, path, "key").Put(t.Context(), newRecord(fmt.Sprint(i), "1")); err != nil {
				t.Error(err)
			}
		})
	}
	writers.Wait()
	if rs, err := openStore(t, path, "key").List(); len(rs) != 8 || err != nil {
		t.Error(len(rs), err)
	}
}

// No content without a hash is approved, not even by a record without one.
func TestEmptyHashIsNotApproved(t *testing.T) {
	t.Parallel()
	r := newRecord("a", "")
	if (approval.Records{r}).Approves(r.Key(), "") {
		t.Error("a record without a hash approves content without a hash")
	}
}
