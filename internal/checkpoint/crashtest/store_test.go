package crashtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/guideway-dev/guideway/internal/journal/checkpoints"
)

// kind is a kind of store.
type kind struct {
	name string
	// place makes an empty one.
	place func(t *testing.T) place
}

// kinds are the stores that outlive a process.
func kinds() []kind {
	return []kind{
		{"sqlite", func(t *testing.T) place {
			t.Helper()
			return place{Dir: t.TempDir()}
		}},
		{"sqlite, encrypted", func(t *testing.T) place {
			t.Helper()
			return place{Dir: t.TempDir(), Sealed: true}
		}},
		{"files", func(t *testing.T) place {
			t.Helper()
			return place{Dir: t.TempDir(), Store: checkpoints.StoreFiles}
		}},
		{"postgres", func(t *testing.T) place {
			t.Helper()
			return place{Dir: t.TempDir(), Store: emptyPostgres(t), Sealed: true}
		}},
	}
}

// emptyPostgres gives the URL of a schema that nobody uses, or skips the test.
func emptyPostgres(t *testing.T) string {
	t.Helper()
	text := os.Getenv("GUIDEWAY_TEST_POSTGRES")
	if text == "" {
		t.Skip("GUIDEWAY_TEST_POSTGRES names no server")
	}
	at, err := url.Parse(text)
	if err != nil {
		t.Fatalf("GUIDEWAY_TEST_POSTGRES: %v", err)
	}
	schema := fmt.Sprintf("crashtest_%016x", rand.Uint64())
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		conn, err := pgx.Connect(ctx, text)
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close(ctx)
		if _, err := conn.Exec(ctx, "drop schema if exists "+schema+" cascade"); err != nil {
			t.Error(err)
		}
	})
	q := at.Query()
	q.Set("search_path", schema)
	at.RawQuery = q.Encode()
	return at.String()
}

// seeds are a fixed seed and a random one, or the one that repeats a run.
func seeds(t *testing.T) []uint64 {
	t.Helper()
	if text := os.Getenv("GUIDEWAY_CRASH_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("GUIDEWAY_CRASH_SEED: %v", err)
		}
		return []uint64{seed}
	}
	random := rand.Uint64N(1e9)
	t.Logf("GUIDEWAY_CRASH_SEED=%d repeats this run", random)
	return []uint64{1, random}
}

// long leaves a test out of short mode, which is that of the race detector: nothing
// in it runs side by side in one process.
func long(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("it takes long, and the race detector finds nothing in it; .ci/run crash runs it")
	}
}

// amount is how much of something a test does: what the environment says, else
// little, and still less in short mode.
func amount(t *testing.T, name string, little, short int) int {
	t.Helper()
	text := os.Getenv(name)
	switch {
	case text == "" && testing.Short():
		return short
	case text == "":
		return little
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s is %q, not a number from 1 on", name, text)
	}
	return n
}
