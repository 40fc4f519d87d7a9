package blob_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/blob"
	"github.com/guideway-dev/guideway/internal/contexts/blob/blobtest"
)

// TestFiles runs the test suite that every store must pass, with stores in a directory.
func TestFiles(t *testing.T) {
	t.Parallel()
	blobtest.Exercise(t, func(t *testing.T) blobtest.Opener {
		dir := filepath.Join(t.TempDir(), "made", "contexts")
		return func(t *testing.T) blob.Store {
			t.Helper()
			f, err := blob.OpenFiles(blob.FilesOptions{Dir: dir, MaxBytes: blobtest.MaxBytes})
			if err != nil {
				t.Fatal(err)
			}
			return f
		}
	})
}

// TestMemory runs the test suite that every store must pass, with stores in memory.
func TestMemory(t *testing.T) {
	t.Parallel()
	blobtest.Exercise(t, func(*testing.T) blobtest.Opener {
		m := blob.NewMemory(blobtest.MaxBytes)
		return func(*testing.T) blob.Store { return m }
	})
}

// TestOverlay runs the test suite that every store must pass, with overlays.
func TestOverlay(t *testing.T) {
	t.Parallel()
	blobtest.Exercise(t, func(t *testing.T) blobtest.Opener {
		below, err := blob.OpenFiles(blob.FilesOptions{Dir: filepath.Join(t.TempDir(), "none"), ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		o := blob.NewOverlay(below, blobtest.MaxBytes)
		return func(*testing.T) blob.Store { return o }
	})
}

// TestOverlayKeepsStore checks that the store below an overlay is readable and never changed.
func TestOverlayKeepsStore(t *testing.T) {
	t.Parallel()
	below := blob.NewMemory(0)
	old, err := below.Put(t.Context(), []byte("old"))
	if err != nil {
		t.Fatal(err)
	}
	if err := below.CreateSlot(t.Context(), "key-1", []byte("wrapped")); err != nil {
		t.Fatal(err)
	}
	o := blob.NewOverlay(below, 0)
	if data, err := o.Get(t.Context(), old); err != nil || string(data) != "old" {
		t.Errorf("the blob of the store below is %q, %v", data, err)
	}
	if err := o.CreateSlot(t.Context(), "key-1", nil); guideway.ErrorCode(err) != guideway.CodeConflict {
		t.Errorf("a slot of the store below was created again: %v", err)
	}
	if _, err := o.Put(t.Context(), []byte("new")); err != nil {
		t.Fatal(err)
	}
	swept, err := o.Sweep(t.Context(), func(info blob.Info) bool { return info.Name != old })
	if err != nil || swept.Blobs != 1 {
		t.Errorf("Sweep returned %+v, %v", swept, err)
	}
	if err := o.EraseSlot(t.Context(), "key-1"); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Get(t.Context(), old); guideway.ErrorCode(err) != guideway.CodeNotFound {
		t.Errorf("a removed blob can be read: %v", err)
	}
	if slots, err := o.Slots(t.Context(), "key-"); err != nil || len(slots) != 0 {
		t.Errorf("an erased slot is listed: %v, %v", slots, err)
	}
	if data, err := below.Get(t.Context(), old); err != nil || string(data) != "old" {
		t.Errorf("the blob below is %q, %v", data, err)
	}
	if value, err := below.Slot(t.Context(), "key-1"); err != nil || string(value) != "wrapped" {
		t.Errorf("the slot below is %q, %v", value, err)
	}
}

// TestNoDirectory checks the error for a directory that cannot be created.
func TestNoDirectory(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := blob.OpenFiles(blob.FilesOptions{Dir: filepath.Join(file, "contexts")})
	if guideway.ErrorCode(err) != guideway.CodeUnavailable || guideway.ErrorFix(err) == "" {
		t.Errorf("the error is %v (%s)", err, guideway.ErrorCode(err))
	}
}

// TestCancelled checks that Put with a canceled context stores nothing.
func TestCancelled(t *testing.T) {
	t.Parallel()
	f, err := blob.OpenFiles(blob.FilesOptions{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.Put(ctx, []byte("x")); guideway.ErrorCode(err) != guideway.CodeUnavailable {
		t.Errorf("put: %v", err)
	}
	if _, err := f.Get(t.Context(), blob.NameOf([]byte("x"))); guideway.ErrorCode(err) != guideway.CodeNotFound {
		t.Errorf("the blob was stored: %v", err)
	}
}
