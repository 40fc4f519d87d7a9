package postgres_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/blob"
	"github.com/guideway-dev/guideway/internal/contexts/blob/blobtest"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint/indextest"
	"github.com/guideway-dev/guideway/internal/store/postgres"
)

// TestCheckpoints runs the contract tests of the checkpoint index.
func TestCheckpoints(t *testing.T) {
	t.Parallel()
	serverURL(t)
	indextest.Exercise(t, func(t *testing.T) indextest.Opener {
		u := newSchemaURL(t)
		return func(t *testing.T) indextest.Index { return openStore(t, postgres.Options{URL: u, MaxConns: 4}) }
	})
}

// TestBlobs runs the contract tests of blob stores.
func TestBlobs(t *testing.T) {
	t.Parallel()
	serverURL(t)
	blobtest.Exercise(t, func(t *testing.T) blobtest.Opener {
		u := newSchemaURL(t)
		return func(t *testing.T) blob.Store {
			return openStore(t, postgres.Options{URL: u, MaxConns: 4}).Blobs(blobtest.MaxBytes)
		}
	})
}

// TestOtherMachine checks that two services that share only a database load the checkpoints
// of each other.
func TestOtherMachine(t *testing.T) {
	t.Parallel()
	u := newSchemaURL(t)
	ada := guideway.Principal{User: "ada"}
	service := func() *checkpoint.Service {
		s := openStore(t, postgres.Options{URL: u, MaxConns: 4})
		c, err := checkpoint.New(checkpoint.Options{Index: s, Blobs: s.Blobs(0), Store: checkpoint.Store{Mode: checkpoint.ModePostgres}})
		requireNoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	here, there := service(), service()
	saved := map[string]string{}
	for i, s := range []*checkpoint.Service{here, there, here, there, there} {
		text := fmt.Sprintf(`{"log":%q,"step":%d}`, strings.Repeat("the gate was repaired ", 50), i)
		one, err := s.Save(t.Context(), ada, checkpoint.SaveRequest{Session: "work", Context: json.RawMessage(text)})
		requireNoError(t, err)
		saved[one.ID] = text
	}
	for id, text := range saved {
		for _, s := range []*checkpoint.Service{here, there} {
			loaded, err := s.Load(t.Context(), ada, checkpoint.LoadRequest{ID: id})
			requireNoError(t, err)
			if string(loaded.Context) != text {
				t.Errorf("%s is %s", id, loaded.Context)
			}
		}
	}
	report, err := there.Verify(t.Context())
	requireNoError(t, err)
	if report.Checkpoints != 5 || len(report.Damaged) > 0 || report.Unknown > 0 {
		t.Errorf("the verification found %+v", report)
	}
	if n := queryNumber(t, u, `select count(*)::int from blobs`); n != 5 {
		t.Errorf("there are %d blobs", n)
	}
}
