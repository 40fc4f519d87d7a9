package approval_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gofrs/flock"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/hooks/approval"
)

// openStoreWithRecord opens a store with one record, and returns its file and the content of
// the file.
func openStoreWithRecord(t *testing.T) (s *approval.Store, path string, content []byte) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "approvals.json")
	s = openStore(t, path, "key")
	if _, err := s.Put(t.Context(), newRecord("a", "1")); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return s, path, content
}

// A change is refused if the file was edited, and the edited file is not replaced.
func TestChangeKeepsAnEditedFile(t *testing.T) {
	t.Parallel()
	s, path, good := openStoreWithRecord(t)
	for name, text := range map[string]string{
		"another hash": strings.Replace(string(good), `"hash": "1"`, `"hash": "2"`, 1), "no JSON": "{", "empty": "",
		"another form": strings.Replace(string(good), `"form": 1`, `"form": 9`, 1),
	} {
		if text == string(good) {
			t.Fatalf("%s: the file is unchanged: %s", name, good)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Put(t.Context(), newRecord("b", "1")); guideway.ErrorCode(err) != guideway.CodeForbidden {
			t.Errorf("%s: Put returned %v", name, err)
		}
		a := newRecord("a", "1")
		if ok, err := s.Remove(t.Context(), a.Key()); guideway.ErrorCode(err) != guideway.CodeForbidden || ok {
			t.Errorf("%s: Remove returned %v, %v", name, ok, err)
		}
		if after, err := os.ReadFile(path); err != nil || string(after) != text {
			t.Errorf("%s: the file was replaced with %s, %v", name, after, err)
		}
	}
}

// A failed change does not modify the file.
func TestFailedChange(t *testing.T) {
	t.Parallel()
	s, path, good := openStoreWithRecord(t)
	no := errors.New("no")
	if err := s.Change(t.Context(), func(approval.Records) (approval.Records, error) { return nil, no }); !errors.Is(err, no) {
		t.Errorf("Change with a failing edit returns %v", err)
	}
	huge := newRecord(strings.Repeat("x", 8<<20), "1")
	if _, err := s.Put(t.Context(), huge); guideway.ErrorCode(err) != guideway.CodeTooLarge || guideway.ErrorFix(err) == "" {
		t.Errorf("Put into a file that would be too large returns %v", err)
	}
	damaged := newRecord("b", "1")
	damaged.Scope = json.RawMessage(`{"type":`)
	if _, err := s.Put(t.Context(), damaged); guideway.ErrorCode(err) != guideway.CodeInternal {
		t.Errorf("a scope that is no JSON: %v", err)
	}
	lock := flock.New(path + ".lock")
	if err := lock.Lock(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := s.Put(ctx, newRecord("b", "1")); guideway.ErrorCode(err) != guideway.CodeUnavailable {
		t.Errorf("while another process holds the lock, Put returns %v", err)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	if after, err := os.ReadFile(path); err != nil || string(after) != string(good) {
		t.Errorf("the file is %s, %v", after, err)
	}
	below := openStore(t, filepath.Join(path, "below", "approvals.json"), "key")
	if _, err := below.Put(t.Context(), newRecord("a", "1")); guideway.ErrorCode(err) != guideway.CodeUnavailable || guideway.ErrorFix(err) == "" {
		t.Errorf("Put into a directory that cannot be created returns %v", err)
	}
}

// A store needs a path and a key. An approval needs a kind, a subject, a hash and a person.
func TestIncompleteApprovals(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "approvals.json")
	for _, o := range []approval.Options{{}, {Path: path}, {Key: []byte("key")}} {
		if s, err := approval.Open(o); err == nil || s != nil {
			t.Errorf("%+v was opened", o)
		}
	}
	s, err := approval.Open(approval.Options{Path: path, Key: []byte("key")})
	if err != nil {
		t.Fatal(err)
	}
	for name, edit := range map[string]func(r *approval.Record){
		"kind": func(r *approval.Record) { r.Kind = "" }, "subject": func(r *approval.Record) { r.Subject = "" },
		"hash": func(r *approval.Record) { r.Hash = "" }, "person": func(r *approval.Record) { r.Who = "" },
	} {
		r := newRecord("a", "1")
		edit(&r)
		if _, err := s.Put(t.Context(), r); err == nil {
			t.Errorf("an approval without a %s was stored", name)
		}
	}
	if rs, err := s.List(); err != nil || len(rs) != 0 {
		t.Errorf("the records are %v, %v", rs, err)
	}
	before := time.Now().Add(-time.Second)
	if r, err := s.Put(t.Context(), newRecord("a", "1")); err != nil || r.When.Before(before) {
		t.Errorf("the approval has the time %v, %v", r.When, err)
	}
}

// The MAC of a file covers a purpose and the records. A MAC of the same records with the
// same key for another purpose is refused.
func TestMACOfTheRecords(t *testing.T) {
	t.Parallel()
	const records = `[{"kind":"hook-graph","source":"project:/p","subject":"a","hash":"1","who":"me","when":"2026-01-02T03:04:05Z"}]`
	for purpose, accepted := range map[string]bool{"guideway approvals 1\n": true, "": false, "guideway approvals 2\n": false} {
		mac := hmac.New(sha256.New, []byte("key"))
		mac.Write([]byte(purpose + records))
		path := filepath.Join(t.TempDir(), "approvals.json")
		text := `{"form":1,"records":` + records + `,"mac":"` + hex.EncodeToString(mac.Sum(nil)) + `"}`
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		rs, err := openStore(t, path, "key").List()
		if accepted && (err != nil || len(rs) != 1 || rs[0].Subject != "a") || !accepted && (guideway.ErrorCode(err) != guideway.CodeForbidden || rs != nil) {
			t.Errorf("a MAC of the records after %q: %v, %v", purpose, rs, err)
		}
	}
}
