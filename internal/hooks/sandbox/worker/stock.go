package worker

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"slices"

	scriptwire "github.com/guideway-dev/guideway/internal/hooks/sandbox/protocol"
	"github.com/guideway-dev/guideway/internal/hooks/sandbox/quickjs"
)

// Limits of the scripts that are parsed before a call.
const (
	// maxParsed is the maximum number of parsed scripts of a worker.
	maxParsed = 32
	// maxParsedSize is the maximum total size of the engine states of parsed scripts in
	// bytes.
	maxParsedSize = 2 << 20
	// maxParsedSource is the maximum size of a parsed script with its library in bytes.
	maxParsedSource = 128 << 10
)

// stock holds the engine states in which calls can start. The blank state has parsed no
// script. Each other state has parsed, but not run, a script that ran before, so that
// another call of that script does not wait for the parser. Before each call the engine is
// restored to one of these states, so that no traces of previous scripts remain.
type stock struct {
	v      *vm
	blank  *quickjs.Image
	parsed []parsedScript // least recently used first
	ready  *quickjs.Image // the current state of the engine; nil after a call has started
	next   *scriptwire.Request
}

type parsedScript struct {
	key   scriptKey
	image *quickjs.Image
}

// newStock creates the engine and its first state.
func newStock(memory int64) (*stock, error) {
	v, err := newVM(memory)
	if err != nil {
		return nil, err
	}
	blank := v.e.Image(nil)
	return &stock{v: v, blank: blank, ready: blank}, nil
}

type scriptKey [sha256.Size]byte

// keyOf returns the cache key of a script. It covers everything that the parser gets.
func keyOf(r *scriptwire.Request) scriptKey {
	h := sha256.New()
	var size [8]byte
	add := func(text string) {
		binary.LittleEndian.PutUint64(size[:], uint64(len(text)))
		h.Write(size[:])
		h.Write([]byte(text))
	}
	add(r.Name)
	add(r.Source)
	for _, list := range [][]string{r.Params, fileTexts(r.Library)} {
		binary.LittleEndian.PutUint64(size[:], uint64(len(list)))
		h.Write(size[:])
		for _, text := range list {
			add(text)
		}
	}
	return scriptKey(h.Sum(nil))
}

func fileTexts(files []scriptwire.File) []string {
	texts := make([]string, 0, 2*len(files))
	for _, f := range files {
		texts = append(texts, f.Name, f.Source)
	}
	return texts
}

// parseNew parses the script that addScript recorded, if any. It then restores the engine
// to the state for the last script, which is likely to run again.
func (s *stock) parseNew(known forms) {
	if r := s.next; r != nil {
		s.next = nil
		s.setImage(s.blank)
		s.ready = nil
		if s.v.parseAhead(r, known) {
			s.parsed = append(s.parsed, parsedScript{keyOf(r), s.v.e.Image(s.blank)})
			s.ready = s.parsed[len(s.parsed)-1].image
			s.trimParsed()
		}
	}
	if n := len(s.parsed); n > 0 {
		s.setImage(s.parsed[n-1].image)
	} else {
		s.setImage(s.blank)
	}
}

// trimParsed removes the least recently used scripts if there are too many, or if their
// states are too large.
func (s *stock) trimParsed() {
	size := 0
	for i, p := range slices.Backward(s.parsed) {
		if size += p.image.Size(); size > maxParsedSize || len(s.parsed)-i > maxParsed {
			s.parsed = slices.Delete(s.parsed, 0, i+1)
			return
		}
	}
}

// setImage restores the engine to a state.
func (s *stock) setImage(image *quickjs.Image) {
	if s.ready != image {
		s.v.e.Restore(image)
		s.ready = image
	}
}

// takeVM returns the VM for a call.
func (s *stock) takeVM(r *scriptwire.Request) *vm {
	image := s.blank
	if !r.Check && len(s.parsed) > 0 {
		key := keyOf(r)
		i := slices.IndexFunc(s.parsed, func(p parsedScript) bool { return p.key == key })
		if i >= 0 {
			found := s.parsed[i]
			image = found.image
			s.parsed = append(slices.Delete(s.parsed, i, i+1), found)
		}
	}
	s.setImage(image)
	s.ready = nil
	return s.v
}

// addScript records a script that ran successfully, so that it is parsed in advance for its
// next call.
func (s *stock) addScript(r *scriptwire.Request) {
	size := len(r.Source)
	for _, f := range r.Library {
		size += len(f.Source)
	}
	if r.Check || size > maxParsedSource {
		return
	}
	key := keyOf(r)
	if !slices.ContainsFunc(s.parsed, func(p parsedScript) bool { return p.key == key }) {
		s.next = &scriptwire.Request{Name: r.Name, Source: r.Source, Params: r.Params, Library: r.Library, Limits: r.Limits}
	}
}

// parseAhead makes the engine load the script's modules without evaluating them: compiling
// a module loads its imports. It reports whether that succeeded.
func (v *vm) parseAhead(r *scriptwire.Request, known forms) bool {
	v.armCall(r)
	known.setForm(v, v.script.main)
	name, err := json.Marshal(v.script.main.name)
	if err != nil {
		return false
	}
	return v.e.Parse(engineName, "import "+string(name)) == nil && v.failure == nil
}
