package writer

import (
	"errors"
	"slices"
	"testing"
)

// recordedFile records its calls and fails one of them.
type recordedFile struct {
	calls []string
	fails string
}

var errDisk = errors.New("the disk failed")

func (f *recordedFile) record(call string) error {
	f.calls = append(f.calls, call)
	if call == f.fails {
		return errDisk
	}
	return nil
}

func (f *recordedFile) Write(p []byte) (int, error) { return len(p), f.record("write " + string(p)) }

func (f *recordedFile) Sync() error { return f.record("sync") }

func (f *recordedFile) Close() error { return f.record("close") }

// TestWriteSynced checks that a definition is durable before it takes the place of another
// one, and that no error of a step is lost.
func TestWriteSynced(t *testing.T) {
	t.Parallel()
	all := []string{"write text", "sync", "close"}
	for fails, want := range map[string][]string{"": all, "write text": {"write text", "close"}, "sync": all, "close": all} {
		f := &recordedFile{fails: fails}
		err := writeSynced(f, "text")
		if errors.Is(err, errDisk) != (fails != "") || !slices.Equal(f.calls, want) {
			t.Errorf("if %q fails: %v after %q, want %q", fails, err, f.calls, want)
		}
	}
}
