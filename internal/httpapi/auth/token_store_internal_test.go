package auth

import (
	"context"
	"io/fs"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/deployment"
)

// A record that cannot be encoded is an error and leaves no file: an empty record would be
// read as a credential without limits.
func TestUnencodableRecordIsNotStored(t *testing.T) {
	t.Parallel()
	v := newTokenStore(t.TempDir(), nil, nil)
	if err := v.createRecord("secret", func() {}); guideway.ErrorCode(err) != guideway.CodeInternal {
		t.Errorf("create a record that is not JSON: %v", err)
	}
	if list, err := os.ReadDir(v.dir); err != nil || len(list) != 0 {
		t.Errorf("the directory has %v, %v", list, err)
	}
}

// No credential is created in a directory in which other users could replace it, and an
// existing record is not replaced.
func TestRecordIsNotStored(t *testing.T) {
	t.Parallel()
	v := newTokenStore(t.TempDir(), nil, nil)
	if err := v.createRecord("secret", "first"); err != nil {
		t.Fatal(err)
	}
	if err := v.createRecord("secret", "second"); guideway.ErrorCode(err) != guideway.CodeUnavailable {
		t.Errorf("create a record that exists: %v", err)
	}
	var record string
	if _, err := v.getRecord("secret", &record); err != nil || record != "first" {
		t.Errorf("the record is %q, %v", record, err)
	}
	if runtime.GOOS == "windows" {
		return // Windows has no permission bits.
	}
	if err := os.Chmod(v.dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := v.createRecord("another secret", "third"); guideway.ErrorCode(err) != guideway.CodeForbidden {
		t.Errorf("create a record in a directory that all may write: %v", err)
	}
	if list, err := os.ReadDir(v.dir); err != nil || len(list) != 1 {
		t.Errorf("the directory has %v, %v", list, err)
	}
}

// entries is a shared state in memory, for one goroutine.
type entries struct {
	deployment.State

	of map[string]deployment.Entry
}

func (s *entries) Entries(_ context.Context, prefix string) (list []deployment.Entry, err error) {
	for _, name := range slices.Sorted(maps.Keys(s.of)) {
		if strings.HasPrefix(name, prefix) {
			list = append(list, s.of[name])
		}
	}
	return list, nil
}

func (s *entries) Create(_ context.Context, e deployment.Entry) error {
	if _, there := s.of[e.Name]; there {
		return fs.ErrExist
	}
	s.of[e.Name] = e
	return nil
}

func (s *entries) Touch(_ context.Context, name string, at time.Time) error {
	e := s.of[name]
	e.Touched = at
	s.of[name] = e
	return nil
}

func (s *entries) Remove(_ context.Context, name string) (bool, error) {
	_, there := s.of[name]
	delete(s.of, name)
	return there, nil
}

// The instances of a deployment share their tokens, and no other entries of its state: each
// lists, accepts and revokes the tokens that another has created.
func TestSharedTokens(t *testing.T) {
	t.Parallel()
	state := &entries{of: map[string]deployment.Entry{"pins/x": {Name: "pins/x", Text: `{"name":"x","user":"ann"}`}}}
	instances := make([]*Tokens, 2)
	for i := range instances {
		var err error
		if instances[i], err = NewTokens(TokenOptions{Dir: t.TempDir() + "/tokens", Shared: state}); err != nil {
			t.Fatal(err)
		}
	}
	secrets := map[string]string{}
	for _, name := range []string{"desktop", "laptop"} {
		secret, err := instances[0].Create(NamedToken{Name: name, User: "ann", Scopes: []Scope{ScopeRead}})
		if err != nil {
			t.Fatal(err)
		}
		secrets[name] = secret
	}
	if _, err := instances[1].Create(NamedToken{Name: "laptop", User: "ann", Scopes: []Scope{ScopeRead}}); guideway.ErrorCode(err) != guideway.CodeConflict {
		t.Errorf("a second token of the same name: %v", err)
	}
	list, err := instances[1].List()
	if err != nil || len(list) != 2 || list[0].Name != "desktop" || list[1].Name != "laptop" {
		t.Errorf("the other instance lists %+v, %v", list, err)
	}
	if err := instances[1].Revoke("ann", "laptop"); err != nil {
		t.Error(err)
	}
	for name, code := range map[string]guideway.Code{"desktop": "", "laptop": guideway.CodeUnauthorized} {
		if _, err := instances[0].useToken(secrets[name]); guideway.ErrorCode(err) != code {
			t.Errorf("after laptop was revoked, %s returns %v", name, err)
		}
	}
	if len(state.of) != 2 {
		t.Errorf("the entries are %v", state.of)
	}
}
