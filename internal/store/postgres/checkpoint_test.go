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

// TestCheckpoints holds the store to what every index of checkpoints promises.
func TestCheckpoints(t *testing.T) {
	t.Parallel()
	server(t)
	indextest.Exercise(t, func(t *testing.T) indextest.Opener {
		u := inSchema(t)
		return func(t *testing.T) indextest.Index { return open(t, postgres.Options{URL: u, MaxConns: 4}) }
	})
}

// TestBlobs holds it to what every store of blobs promises.
func TestBlobs(t *testing.T) {
	t.Parallel()
	server(t)
	blobtest.Exercise(t, func(t *testing.T) blobtest.Opener {
		u := inSchema(t)
		return func(t *testing.T) blob.Store {
			return open(t, postgres.Options{URL: u, MaxConns: 4}).Blobs(blobtest.MaxBytes)
		}
	})
}

// TestOtherMachine: a checkpoint that was saved on one machine loads on another,
// which has nothing but the database.
func TestOtherMachine(t *testing.T) {
	t.Parallel()
	u := inSchema(t)
	ada := guideway.Principal{User: "ada"}
	service := func() *checkpoint.Service {
		s := open(t, postgres.Options{URL: u, MaxConns: 4})
		c, err := checkpoint.New(checkpoint.Options{Index: s, Blobs: s.Blobs(0), Store: checkpoint.Store{Mode: checkpoint.ModePostgres}})
		must(t, err)
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	here, there := service(), service()
	saved := map[string]string{}
	for i, s := range []*checkpoint.Service{here, there, here, there, there} {
		text := fmt.Sprintf(`{"log":%q,"step":%d}`, strings.Repeat("the gate was mended ", 50), i)
		one, err := s.Save(t.Context(), ada, checkpoint.SaveRequest{Session: "work", Context: json.RawMessage(text)})
		must(t, err)
		saved[one.ID] = text
	}
	for id, text := range saved {
		for _, s := range []*checkpoint.Service{here, there} {
			loaded, err := s.Load(t.Context(), ada, checkpoint.LoadRequest{ID: id})
			must(t, err)
			if string(loaded.Context) != text {
				t.Errorf("%s is %s", id, loaded.Context)
			}
		}
	}
	report, err := there.Verify(t.Context())
	must(t, err)
	if report.Checkpoints != 5 || len(report.Damaged) > 0 || report.Unknown > 0 {
		t.Errorf("verified is %+v", report)
	}
	if n := number(t, u, `select count(*)::int from blobs`); n != 5 {
		t.Errorf("there are %d blobs", n)
	}
}
