package blob_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/blob"
	"github.com/guideway-dev/guideway/internal/blob/blobtest"
)

// TestFiles holds the directory to what every store of blobs promises.
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

// TestMemory holds what is kept in memory to the same.
func TestMemory(t *testing.T) {
	t.Parallel()
	blobtest.Exercise(t, func(*testing.T) blobtest.Opener {
		m := blob.NewMemory(blobtest.MaxBytes)
		return func(*testing.T) blob.Store { return m }
	})
}

// TestNoDirectory: a directory that cannot be made is a clear error.
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

// TestCancelled: a call whose context has ended does nothing.
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
		t.Errorf("it was stored: %v", err)
	}
}
