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
	"github.com/guideway-dev/guideway/internal/platform/safeopen"
)

const (
	// indexForm is the version of the form of an index; one of another form counts
	// for nothing.
	indexForm = 1
	// maxIndex bounds an index, which is read whole.
	maxIndex = 16 << 20
	// indexLife is how long an index stays that nobody writes: it may be of a
	// project that is gone. One that is needed is made again.
	indexLife = 30 * 24 * time.Hour
	indexExt  = ".index"
)

// index is what was learnt of the workflows of one source. It is a cache: what is in
// it only says what lists tell, by the hash of the text, and whoever wants a workflow
// has its text read.
type index map[indexKey]Head

type indexKey struct {
	name string
	sum  [sha256.Size]byte
}

// indexFile is an index as it is stored, behind a line with the hash of the rest.
type indexFile struct {
	Form int `json:"form"`
	// Program is the one that read the workflows: another may find other things in
	// them.
	Program string      `json:"program"`
	Source  string      `json:"source"`
	Heads   []indexHead `json:"heads"`
}

type indexHead struct {
	File string `json:"file"`
	Sum  string `json:"sum"`
	Head
}

// indexPath is where the index of a source is; "" where none is kept.
func (c *Catalog) indexPath(info SourceInfo) string {
	if c.opts.Index == "" || info.Level == LevelBlocked {
		return ""
	}
	sum := sha256.Sum256([]byte(info.Kind + "\x00" + info.Key()))
	return filepath.Join(c.opts.Index, hex.EncodeToString(sum[:12])+indexExt)
}

// recall reads the index of a source. One that is not whole, of another program or of
// another source is none.
func (c *Catalog) recall(info SourceInfo) index {
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
	if string(sum) != sumOf(body) || json.Unmarshal(body, &stored) != nil {
		return nil
	}
	if stored.Form != indexForm || stored.Program != c.opts.Program || stored.Source != info.Key() {
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

func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// remember writes the index of a source in which something was read that the index
// does not have. It is no loss where that fails.
func (c *Catalog) remember(s *state) {
	path := c.indexPath(s.info)
	if path == "" {
		return
	}
	stored, news := indexFile{Form: indexForm, Program: c.opts.Program, Source: s.info.Key()}, false
	for _, r := range s.records {
		if r.good == nil || r.broken || len(r.found) > 0 {
			continue
		}
		news = news || r.learnt
		stored.Heads = append(stored.Heads, indexHead{File: r.name, Sum: hex.EncodeToString(r.sum[:]), Head: r.good.head})
	}
	if !news {
		return
	}
	body, err := json.Marshal(stored)
	if err != nil || len(body) > maxIndex/2 {
		return
	}
	if atomicfile.MakeDir(c.opts.Index) == nil && replaceLoosely(path, append([]byte(sumOf(body)+"\n"), body...)) == nil {
		c.sweepIndexes()
	}
}

// replaceLoosely puts a file in the place of another without making it durable: one
// that a power loss tears is known by its hash.
func replaceLoosely(path string, data []byte) error {
	temp, err := os.CreateTemp(filepath.Dir(path), "*"+indexExt) // 0600
	if err != nil {
		return err
	}
	_, err = temp.Write(data)
	if err = errors.Join(err, temp.Close()); err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		_ = os.Remove(temp.Name())
	}
	return err
}

// sweepIndexes removes the indexes that nobody has written for long, and what was left
// by programs that were killed.
func (c *Catalog) sweepIndexes() {
	entries, err := os.ReadDir(c.opts.Index)
	if err != nil {
		return
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err == nil && info.Mode().IsRegular() && strings.HasSuffix(entry.Name(), indexExt) && time.Since(info.ModTime()) > indexLife {
			_ = os.Remove(filepath.Join(c.opts.Index, entry.Name())) // there is another time
		}
	}
}

// forget removes the index of a source.
func (c *Catalog) forget(info SourceInfo) {
	if path := c.indexPath(info); path != "" {
		_ = os.Remove(path) // one that stays is not read again by this program
	}
}

// known gives what an index says of a document with this hash, if that is a workflow.
func (r *record) known(known index, sum [sha256.Size]byte) (Head, bool) {
	if r.place.Kind != "" || r.hookPlace.Kind != "" || r.machineFile {
		return Head{}, false
	}
	head, ok := known[indexKey{r.name, sum}]
	return head, ok
}

// mismatch is what to say of a document that is not what its source says.
func mismatch(document Document) *guideway.Diagnostic {
	d := problem("file-changed", document.Path, "the copy of the file was changed, and is not what was fetched",
		"guideway sources sync")
	return &d
}
