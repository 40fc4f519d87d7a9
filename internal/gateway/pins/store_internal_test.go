package pins

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway/internal/hooks/approval"
	"github.com/guideway-dev/guideway/internal/platform/deployment"
	"github.com/guideway-dev/guideway/internal/platform/digest"
)

// unnestedState is a shared state in memory whose changes are not nested, as those of a database
// are not.
type unnestedState struct {
	deployment.State
	entries  map[string]string
	changing bool
}

func (s *unnestedState) Entries(_ context.Context, prefix string) (list []deployment.Entry, err error) {
	for name, text := range s.entries {
		if strings.HasPrefix(name, prefix) {
			list = append(list, deployment.Entry{Name: name, Text: text})
		}
	}
	return list, nil
}

func (s *unnestedState) Create(_ context.Context, e deployment.Entry) error {
	if s.entries[e.Name] != "" {
		return fs.ErrExist
	}
	s.entries[e.Name] = e.Text
	return nil
}

func (s *unnestedState) Remove(_ context.Context, name string) (bool, error) {
	_, had := s.entries[name]
	delete(s.entries, name)
	return had, nil
}

func (s *unnestedState) Change(_ context.Context, name string, edit func(string) (string, error)) error {
	if s.changing {
		return errors.New("a change is in progress")
	}
	s.changing = true
	defer func() { s.changing = false }()
	text, err := edit(s.entries[name])
	if err == nil {
		s.entries[name] = text
	}
	return err
}

// The instances of a deployment share approved definitions. A new definition replaces the one
// before.
func TestSharedPins(t *testing.T) {
	t.Parallel()
	state := &unnestedState{entries: map[string]string{}}
	records, err := approval.Open(approval.Options{Path: "approvals.json", Shared: state})
	if err != nil {
		t.Fatal(err)
	}
	store := Store{Approvals: records, Shared: state}
	for _, text := range []string{`{"name":"a"}`, `{"name":"a","title":"b"}`} {
		definition := json.RawMessage(text)
		if err := store.Approve("wiki", map[string]Pin{"a": {Hash: digest.Hex(definition), Definition: definition}}); err != nil {
			t.Fatal(err)
		}
		if got, err := store.Approved("wiki"); err != nil || string(got["a"].Definition) != text {
			t.Errorf("the pins are %v, %v", got, err)
		}
	}
}
