package seal

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/blob"
)

// TestTexts checks that a text is encrypted for its place, that it is decrypted even if the
// encryption was turned off later, and that an empty text stays empty.
func TestTexts(t *testing.T) {
	t.Parallel()
	slots, path := blob.NewMemory(0), filepath.Join(t.TempDir(), "key")
	open := func(ctx context.Context) (*Keys, error) { return Open(ctx, slots, File{Path: path}) }
	on, off := NewTexts(true, open), NewTexts(false, open)
	plain := []byte(`{"plan":1}`)
	sealed, err := on.Seal(t.Context(), plain, "log")
	if err != nil || !IsSealed(sealed) || bytes.Contains(sealed, []byte("plan")) {
		t.Fatalf("Seal returned %q, %v", sealed, err)
	}
	for name, texts := range map[string]*Texts{"the same": on, "another": NewTexts(true, open), "a turned off": off} {
		if text, err := texts.Open(t.Context(), sealed, "log"); err != nil || !bytes.Equal(text, plain) {
			t.Errorf("%s Texts opens %q, %v", name, text, err)
		}
		if text, err := texts.Open(t.Context(), plain, "log"); err != nil || !bytes.Equal(text, plain) {
			t.Errorf("%s Texts opens a plain text as %q, %v", name, text, err)
		}
		if _, err := texts.Open(t.Context(), sealed, "notes"); !errors.Is(err, ErrTampered) || guideway.ErrorCode(err) != guideway.CodeUnavailable {
			t.Errorf("%s Texts opens a text of another place: %v", name, err)
		}
		if text, err := texts.Seal(t.Context(), nil, "log"); err != nil || len(text) != 0 {
			t.Errorf("%s Texts seals an empty text as %q, %v", name, text, err)
		}
	}
	for name, texts := range map[string]*Texts{"a turned off": off, "no": nil} {
		if text, err := texts.Seal(t.Context(), plain, "log"); err != nil || !bytes.Equal(text, plain) {
			t.Errorf("%s Texts seals %q, %v", name, text, err)
		}
	}
}

// TestTextsWithoutKey checks that no text is sealed or opened while the key is not available,
// and that the key is loaded again for the next text.
func TestTextsWithoutKey(t *testing.T) {
	t.Parallel()
	slots, path := blob.NewMemory(0), filepath.Join(t.TempDir(), "key")
	locked := guideway.Errorf(guideway.CodeUnavailable, "the keychain is locked").WithFix("unlock it")
	fail := error(locked)
	texts := NewTexts(true, func(ctx context.Context) (*Keys, error) {
		if fail != nil {
			return nil, fail
		}
		return Open(ctx, slots, File{Path: path})
	})
	if text, err := texts.Seal(t.Context(), []byte("plan"), "log"); !errors.Is(err, locked) || text != nil {
		t.Errorf("without a key, Seal returned %q, %v", text, err)
	}
	if text, err := texts.Open(t.Context(), []byte{textMark, 1, 2}, "log"); !errors.Is(err, locked) || guideway.ErrorFix(err) != "unlock it" || text != nil {
		t.Errorf("without a key, Open returned %q, %v", text, err)
	}
	fail = nil
	if sealed, err := texts.Seal(t.Context(), []byte("plan"), "log"); err != nil || !IsSealed(sealed) {
		t.Errorf("with the key, Seal returned %q, %v", sealed, err)
	}
}
