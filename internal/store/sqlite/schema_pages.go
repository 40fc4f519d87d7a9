package sqlite

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// pageSize is the page size of every store.
const pageSize = 4096

// copyWithNewSchema copies a damaged file and replaces the schema table of the copy by the
// schema table of a new store. The page numbers match, because the first migration always
// creates its tables in the same order. remove deletes the copy.
func copyWithNewSchema(ctx context.Context, path string) (copied string, remove func(), err error) {
	dir, err := os.MkdirTemp("", "guideway-salvage-*") // mode 0700
	if err != nil {
		return "", nil, err
	}
	remove = func() { _ = os.RemoveAll(dir) }
	defer func() {
		if err != nil {
			remove()
		}
	}()
	pages, err := schemaPages(ctx, filepath.Join(dir, "new.db"))
	if err != nil {
		return "", nil, err
	}
	copied = filepath.Join(dir, "copy.db")
	if err = copyFile(path+"-wal", copied+"-wal"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", nil, err
	}
	if err = copyFile(path, copied); err != nil {
		return "", nil, err
	}
	return copied, remove, writePages(copied, pages)
}

// schemaPages returns the pages of a new store's schema table by their numbers.
func schemaPages(ctx context.Context, path string) (map[uint32][]byte, error) {
	s, err := Open(ctx, Options{Path: path, migrations: migrations()[:1]})
	if err == nil {
		err = s.Close()
	}
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	pages := map[uint32][]byte{}
	for _, n := range append(childPages(data[:pageSize]), 1) {
		if int(n)*pageSize > len(data) {
			return nil, fmt.Errorf("a new store has no page %d", n)
		}
		pages[n] = data[int(n-1)*pageSize : int(n)*pageSize]
	}
	return pages, nil
}

// childPages returns the children of the first page of a file, which is the root of the
// schema table. See "B-tree Pages" in SQLite's file format.
func childPages(first []byte) []uint32 {
	const header, interior = 100, 5 // the file header precedes the page header
	if first[header] != interior {
		return nil
	}
	list := []uint32{binary.BigEndian.Uint32(first[header+8:])}
	cells := int(binary.BigEndian.Uint16(first[header+3:]))
	for i := range cells {
		at := binary.BigEndian.Uint16(first[header+12+2*i:])
		list = append(list, binary.BigEndian.Uint32(first[at:]))
	}
	return list
}

// writePages writes pages into a file, which grows if necessary, and updates the number of
// pages in the file header.
func writePages(path string, pages map[uint32][]byte) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	for n, page := range pages {
		if _, e := file.WriteAt(page, int64(n-1)*pageSize); e != nil {
			err = errors.Join(err, e)
		}
	}
	info, e := file.Stat()
	if err = errors.Join(err, e); err == nil {
		const sizeInPages = 28
		count := binary.BigEndian.AppendUint32(nil, uint32(info.Size()/pageSize))
		_, err = file.WriteAt(count, sizeInPages)
	}
	return errors.Join(err, file.Close())
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
