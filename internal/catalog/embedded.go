package catalog

import (
	"context"
	"fmt"
	"io"
	"io/fs"

	"github.com/guideway-dev/guideway"
)

// Embedded is a source of documents that are built into the program.
type Embedded struct {
	info SourceInfo
	fsys fs.FS
}

var _ Source = (*Embedded)(nil)

// NewEmbedded returns a source of the documents in fsys, at any depth. They never change
// while the program runs.
func NewEmbedded(info SourceInfo, fsys fs.FS) *Embedded {
	if info.Kind == "" {
		info.Kind = "embedded"
	}
	return &Embedded{info: info, fsys: fsys}
}

// Info implements Source.
func (e *Embedded) Info() SourceInfo { return e.info }

// Documents implements Source.
func (e *Embedded) Documents(ctx context.Context) ([]Document, []guideway.Diagnostic, error) {
	var documents []Document
	err := fs.WalkDir(e.fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case entry.IsDir():
			if name != "." && isSkipped(entry.Name()) {
				return fs.SkipDir
			}
			return nil
		case isSkipped(entry.Name()) || !isDocument(name):
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		documents = append(documents, Document{
			Name: name, Path: e.info.Name + ":" + name, Size: info.Size(), Stamp: "embedded",
			Open: func(context.Context) (io.ReadCloser, error) { return e.fsys.Open(name) },
		})
		return nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("list %s: %w", e.info.Name, err)
	}
	return documents, nil, nil
}
