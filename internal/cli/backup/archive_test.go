package backup

import (
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/guideway-dev/guideway/internal/cli/app"
)

// newArchive returns an archive with one member "data/file".
func newArchive(t *testing.T, edit func(z *zip.Writer, m *manifest)) []byte {
	t.Helper()
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	m := &manifest{Format: formatVersion, Store: kindSQLite, Members: map[string]string{}}
	addText(t, z, m, "data/file", strings.Repeat("the content ", 1000))
	if edit != nil {
		edit(z, m)
	}
	_, err := addMember(z, manifestName, 0o600, time.Now(), func(w io.Writer) error { return app.WriteJSON(w, m) })
	if err := errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func addText(t *testing.T, z *zip.Writer, m *manifest, name, text string) {
	t.Helper()
	sum, err := addMember(z, name, 0o644, time.Now(), func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	m.Members[name] = sum
}

// extractBytes unpacks an archive into a directory inside of a directory that must stay empty
// otherwise.
func extractBytes(t *testing.T, archive []byte) (*manifest, string, error) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "inside")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	m, err := extract(t.Context(), bytes.NewReader(archive), int64(len(archive)), dir)
	entries, readErr := os.ReadDir(filepath.Dir(dir))
	if readErr != nil || len(entries) != 1 {
		t.Errorf("files outside of the directory: %v %v", entries, readErr)
	}
	return m, dir, err
}

func TestExtract(t *testing.T) {
	t.Parallel()
	_, dir, err := extractBytes(t, newArchive(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(dir, "data", "file"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the member: %v %v", info, err)
	}
}

// TestExtractDamaged checks that each flipped byte and each cut of an archive is detected, as
// long as it changes the content.
func TestExtractDamaged(t *testing.T) {
	t.Parallel()
	whole := newArchive(t, nil)
	for cut := range len(whole) {
		if _, _, err := extractBytes(t, whole[:cut]); err == nil {
			t.Errorf("an archive that was cut after %d of %d bytes is accepted", cut, len(whole))
		}
	}
	_, wantDir, err := extractBytes(t, whole)
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(filepath.Join(wantDir, "data", "file"))
	if err != nil {
		t.Fatal(err)
	}
	detected := 0
	for i := range whole {
		damaged := bytes.Clone(whole)
		damaged[i] ^= 0x40
		_, dir, err := extractBytes(t, damaged)
		if err != nil {
			detected++
			continue
		}
		if got, err := os.ReadFile(filepath.Join(dir, "data", "file")); err != nil || !bytes.Equal(got, want) {
			t.Errorf("the flipped byte %d changes the content", i)
		}
	}
	if detected < len(whole)/3 {
		t.Errorf("only %d of %d flipped bytes were detected", detected, len(whole))
	}
}

// TestExtractHostile checks that an archive cannot write outside of its directory, and has no
// member that a backup does not have.
func TestExtractHostile(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(z *zip.Writer, m *manifest){
		"parent":        func(z *zip.Writer, m *manifest) { addText(t, z, m, "data/../../outside", "x") },
		"absolute":      func(z *zip.Writer, m *manifest) { addText(t, z, m, filepath.Join(os.TempDir(), "outside"), "x") },
		"dot":           func(z *zip.Writer, m *manifest) { addText(t, z, m, "data/./file", "x") },
		"empty":         func(z *zip.Writer, m *manifest) { addText(t, z, m, "", "x") },
		"directory":     func(z *zip.Writer, m *manifest) { addText(t, z, m, "data/dir/", "") },
		"twice":         func(z *zip.Writer, m *manifest) { addText(t, z, m, "data/file", "x") },
		"file as a dir": func(z *zip.Writer, m *manifest) { addText(t, z, m, "data/file/inside", "x") },
		"unlisted": func(z *zip.Writer, m *manifest) {
			addText(t, z, &manifest{Members: map[string]string{}}, "data/more", "x")
		},
		"missing":       func(_ *zip.Writer, m *manifest) { m.Members["data/more"] = "" },
		"other content": func(_ *zip.Writer, m *manifest) { m.Members["data/file"] = strings.Repeat("0", 64) },
		"two manifests": func(z *zip.Writer, _ *manifest) {
			addText(t, z, &manifest{Members: map[string]string{}}, manifestName, "{}")
		},
		"link": func(z *zip.Writer, m *manifest) {
			h := &zip.FileHeader{Name: "data/link"}
			h.SetMode(os.ModeSymlink | 0o777)
			out, err := z.CreateHeader(h)
			if err == nil {
				_, err = out.Write([]byte("/etc"))
			}
			if err != nil {
				t.Fatal(err)
			}
			m.Members["data/link"] = ""
		},
		"huge": func(z *zip.Writer, m *manifest) {
			_, err := z.CreateRaw(&zip.FileHeader{Name: "data/huge", UncompressedSize64: maxMember + 1})
			if err != nil {
				t.Fatal(err)
			}
			m.Members["data/huge"] = ""
		},
		"larger than stated": func(z *zip.Writer, m *manifest) {
			_, err := z.CreateRaw(&zip.FileHeader{Name: "data/large", Method: zip.Store, UncompressedSize64: 1 << 39, CompressedSize64: 0})
			if err != nil {
				t.Fatal(err)
			}
			m.Members["data/large"] = ""
		},
	} {
		if _, _, err := extractBytes(t, newArchive(t, edit)); err == nil {
			t.Errorf("%s: the archive is accepted", name)
		}
	}
}
