package backup

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/guideway-dev/guideway/internal/platform/atomicfile"
	"github.com/guideway-dev/guideway/internal/store/rows"
)

const (
	// formatVersion is the version of the format of archives.
	formatVersion = 1
	manifestName  = "manifest.json"
	// maxManifest and maxMember bound the bytes of the manifest and of another member.
	maxManifest = 1 << 30
	maxMember   = 1 << 40
)

// manifest describes an archive, which is a ZIP file.
type manifest struct {
	Format  int       `json:"format"`
	Created time.Time `json:"created"`
	// Program is the version of Guideway.
	Program string `json:"program"`
	// Store is kindSQLite or kindPostgres.
	Store string `json:"store"`
	// Stores has the copied stores: storeRuns and storeMachines.
	Stores map[string]rows.Copied `json:"stores"`
	// Members has the SHA-256 of each other member.
	Members map[string]string `json:"members"`
}

// describe returns the content of an archive in words.
func (m *manifest) describe() string {
	runs := m.Stores[storeRuns].Rows
	return fmt.Sprintf("runs: %d, events: %d, machine runs: %d, session documents: %d, checkpoints: %d, files: %d",
		runs["runs"], runs["events"], m.Stores[storeMachines].Rows["runs"], runs["documents"], runs["checkpoints"], len(m.Members))
}

// addMember adds a member to an archive.
func addMember(z *zip.Writer, name string, mode fs.FileMode, modified time.Time, copyTo func(io.Writer) error) (sha string, err error) {
	h := &zip.FileHeader{Name: name, Method: zip.Deflate, Modified: modified}
	h.SetMode(mode.Perm())
	out, err := z.CreateHeader(h)
	sum := sha256.New()
	if err == nil {
		err = copyTo(io.MultiWriter(out, sum))
	}
	return hex.EncodeToString(sum.Sum(nil)), err
}

// errDamaged is the error for an archive that differs from its manifest.
var errDamaged = errors.New("the archive is damaged, incomplete or not a backup of Guideway")

// extract unpacks an archive into an empty directory, and compares it with its manifest.
func extract(ctx context.Context, in io.ReaderAt, size int64, dir string) (*manifest, error) {
	z, err := zip.NewReader(in, size)
	if err != nil {
		return nil, errors.Join(errDamaged, err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	m := &manifest{}
	file, err := z.Open(manifestName)
	if err == nil {
		err = json.NewDecoder(io.LimitReader(file, maxManifest)).Decode(m)
	}
	if err != nil {
		return nil, errors.Join(errDamaged, err)
	}
	found := 1
	for _, f := range z.File {
		switch want, known := m.Members[f.Name]; {
		case f.Name == manifestName:
		case !known || !f.Mode().IsRegular() || f.UncompressedSize64 > maxMember || !fs.ValidPath(f.Name) || !filepath.IsLocal(filepath.FromSlash(f.Name)):
			return nil, errors.Join(errDamaged, fmt.Errorf("a backup has no member %.200q", f.Name))
		case ctx.Err() != nil:
			return nil, ctx.Err()
		default:
			if err := errors.Join(atomicfile.MakeDir(filepath.Join(dir, path.Dir(f.Name))), writeMember(root, f, want)); err != nil {
				return nil, err
			}
			found++
		}
	}
	if found != len(m.Members)+1 || len(z.File) != found {
		return nil, errors.Join(errDamaged, fmt.Errorf("it has %d of %d members", len(z.File)-1, len(m.Members)))
	}
	return m, nil
}

// writeMember writes a member to a new file, for this user only, and compares it with its
// SHA-256.
func writeMember(root *os.Root, f *zip.File, want string) error {
	in, err := f.Open()
	if err != nil {
		return errors.Join(errDamaged, err)
	}
	defer in.Close()
	file, err := root.OpenFile(f.Name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, f.Mode()&0o700|0o600)
	if err != nil {
		return err
	}
	atomicfile.KeepOwner(file)
	sum := sha256.New()
	_, err = io.Copy(file, io.TeeReader(io.LimitReader(in, int64(f.UncompressedSize64)+1), sum))
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, zip.ErrFormat) || errors.Is(err, zip.ErrChecksum) || err == nil && hex.EncodeToString(sum.Sum(nil)) != want {
		err = errors.Join(errDamaged, fmt.Errorf("the SHA-256 of %q is not that of the manifest", f.Name))
	}
	return errors.Join(err, file.Sync(), file.Close(), root.Chtimes(f.Name, f.Modified, f.Modified))
}
