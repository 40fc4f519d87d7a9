package catalog

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/atomicfile"
	"github.com/guideway-dev/guideway/internal/platform/digest"
	"github.com/guideway-dev/guideway/internal/platform/safeopen"
)

const (
	// indexVersion is the version of the index format; indexes of other versions are
	// ignored.
	indexVersion = 1
	// maxIndex bounds the size of an index, which is read as a whole.
	maxIndex = 16 << 20
	// indexMaxAge is the age at which an index is removed, because its project may no
	// longer exist. An index that is needed is written again.
	indexMaxAge = 30 * 24 * time.Hour
	indexExt    = ".index"
)

// index is a cache of the workflows of one source. It maps the name and the hash of a
// document to the head of its workflow, which is sufficient for lists. To open a workflow,
// its document must still be read.
type index map[indexKey]Head

type indexKey struct {
	name string
	sum  [sha256.Size]byte
}

// indexFile is the stored form of an index. In the file, the first line contains the hash
// of all following bytes.
type indexFile struct {
	Form int `json:"form"`
	// Program is the version of the program that parsed the workflows. Another version may
	// parse them differently.
	Program string      `json:"program"`
	Source  string      `json:"source"`
	Heads   []indexHead `json:"heads"`
}

type indexHead struct {
	File string `json:"file"`
	Sum  string `json:"sum"`
	Head
}

// indexPath returns the path of a source's index, or "" if the source has none.
func (c *Catalog) indexPath(info SourceInfo) string {
	if c.opts.Index == "" || info.Level == LevelBlocked {
		return ""
	}
	return filepath.Join(c.opts.Index, digest.Hex(info.Kind + "\x00" + info.Key())[:24]+indexExt)
}

// readIndex reads the index of a source. It returns nil if there is no valid index of this
// program version.
func (c *Catalog) readIndex(info SourceInfo) index {
	path := c.indexPath(info)
	if path == "" {
		return nil
	}
	file, err := safeopen.Open(path)
	if err != nil {
		return nil
	}
	defer file.Close()
	stat, err := file.Stat()
	if err != nil || stat.Size() > maxIndex {
		return nil
	}
	data, err := appendAll(make([]byte, 0, stat.Size()+1), file)
	if err != nil {
		return nil
	}
	sum, body, _ := bytes.Cut(data, []byte("\n"))
	var stored indexFile
	if string(sum) != digest.Hex(body) || json.Unmarshal(body, &stored) != nil {
		return nil
	}
	if stored.Form != indexVersion || stored.Program != c.opts.Program || stored.Source != info.Key() {
		return nil
	}
	known := make(index, len(stored.Heads))
	for _, h := range stored.Heads {
		key := indexKey{name: h.File}
		if hash, err := hex.DecodeString(h.Sum); err != nil || copy(key.sum[:], hash) != sha256.Size || h.ID == "" {
			return nil
		}
		known[key] = h.Head
	}
	return known
}

// writeIndex writes the index of a source if documents were parsed that are not in the
// stored index. It ignores an error, because without the index a start only takes longer.
func (c *Catalog) writeIndex(s *state) {
	path := c.indexPath(s.info)
	if path == "" {
		return
	}
	stored, news := indexFile{Form: indexVersion, Program: c.opts.Program, Source: s.info.Key()}, false
	for _, r := range s.records {
		if r.good == nil || r.broken || len(r.found) > 0 {
			continue
		}
		news = news || r.parsedHere
		stored.Heads = append(stored.Heads, indexHead{File: r.name, Sum: hex.EncodeToString(r.sum[:]), Head: r.good.head})
	}
	if !news {
		return
	}
	body, err := json.Marshal(stored)
	if err != nil || len(body) > maxIndex/2 {
		return
	}
	if atomicfile.MakeDir(c.opts.Index) == nil && replaceWithoutSync(path, append([]byte(digest.Hex(body)+"\n"), body...)) == nil {
		c.sweepIndexes()
	}
}

// replaceWithoutSync replaces a file without making it durable. The hash detects a file
// that a power loss has damaged.
func replaceWithoutSync(path string, data []byte) error {
	temp, err := os.CreateTemp(filepath.Dir(path), "*"+indexExt) // CreateTemp sets the mode 0600.
	if err != nil {
		return err
	}
	atomicfile.KeepOwner(temp)
	_, err = temp.Write(data)
	if err = errors.Join(err, temp.Close()); err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		_ = os.Remove(temp.Name())
	}
	return err
}

// sweepIndexes removes indexes that are older than indexMaxAge, and temporary files of
// killed processes.
func (c *Catalog) sweepIndexes() {
	entries, err := os.ReadDir(c.opts.Index)
	if err != nil {
		return
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err == nil && info.Mode().IsRegular() && strings.HasSuffix(entry.Name(), indexExt) && time.Since(info.ModTime()) > indexMaxAge {
			_ = os.Remove(filepath.Join(c.opts.Index, entry.Name())) // the next sweep tries again
		}
	}
}

// removeIndex removes the index of a source.
func (c *Catalog) removeIndex(info SourceInfo) {
	if path := c.indexPath(info); path != "" {
		_ = os.Remove(path) // This process does not read a remaining index.
	}
}

// lookUpHead returns the head that an index has for the record's name and a hash, if the
// document is a workflow.
func (r *record) lookUpHead(known index, sum [sha256.Size]byte) (Head, bool) {
	if r.place.Kind != "" || r.hookPlace.Kind != "" || r.machineFile {
		return Head{}, false
	}
	head, ok := known[indexKey{r.name, sum}]
	return head, ok
}

// mismatchDiagnostic reports a document whose content differs from its source's hash.
func mismatchDiagnostic(document Document) *guideway.Diagnostic {
	d := newError("file-changed", document.Path, "the local copy of the file was changed since it was fetched, so it is not read",
		"guideway sources sync")
	return &d
}
