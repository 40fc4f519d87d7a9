package worker

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"slices"

	"github.com/guideway-dev/guideway/internal/hooks/sandbox/quickjs"
	scriptwire "github.com/guideway-dev/guideway/internal/hooks/sandbox/wire"
)

// The bounds of what is parsed before anybody asks for it.
const (
	// maxParsed is how many parsed scripts a worker keeps.
	maxParsed = 32
	// maxParsedSize is what they may take, in bytes.
	maxParsedSize = 2 << 20
	// maxParsedSource bounds such a script with its library, in bytes.
	maxParsedSource = 128 << 10
)

// stock are the states that calls begin in. One has seen no script. The others
// have parsed one that ran before, and nothing of it has run in them: a call of
// that very script need not wait for the parser. Before each call the engine is
// put into one of them, so nothing that a script did is there for the next one.
type stock struct {
	v      *vm
	blank  *quickjs.Image
	parsed []parsedScript // those used longest ago first
	ready  *quickjs.Image // what the engine is in, nil once a call has begun
	next   *scriptwire.Request
}

type parsedScript struct {
	key   scriptKey
	image *quickjs.Image
}

// newStock makes the engine and the first state of it.
func newStock(memory int64) (*stock, error) {
	v, err := newVM(memory)
	if err != nil {
		return nil, err
	}
	blank := v.e.Image(nil)
	return &stock{v: v, blank: blank, ready: blank}, nil
}

type scriptKey [sha256.Size]byte

// keyOf tells scripts apart: by all that the engine gets of one.
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

// fill parses a script that is new, and puts the engine into the state that the
// script which ran last begins in: it is likely to come again.
func (s *stock) fill(known forms) {
	if r := s.next; r != nil {
		s.next = nil
		s.put(s.blank)
		s.ready = nil
		if s.v.parseAhead(r, known) {
			s.parsed = append(s.parsed, parsedScript{keyOf(r), s.v.e.Image(s.blank)})
			s.ready = s.parsed[len(s.parsed)-1].image
			s.bound()
		}
	}
	if n := len(s.parsed); n > 0 {
		s.put(s.parsed[n-1].image)
	} else {
		s.put(s.blank)
	}
}

// bound forgets the scripts used longest ago where there are too many.
func (s *stock) bound() {
	size := 0
	for i, p := range slices.Backward(s.parsed) {
		if size += p.image.Size(); size > maxParsedSize || len(s.parsed)-i > maxParsed {
			s.parsed = slices.Delete(s.parsed, 0, i+1)
			return
		}
	}
}

// put puts the engine into a state.
func (s *stock) put(image *quickjs.Image) {
	if s.ready != image {
		s.v.e.Restore(image)
		s.ready = image
	}
}

// take gives the VM for a call.
func (s *stock) take(r *scriptwire.Request) *vm {
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
	s.put(image)
	s.ready = nil
	return s.v
}

// ran notes a script that ran as it should: it may come again.
func (s *stock) ran(r *scriptwire.Request) {
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

// parseAhead has the engine load the script's modules, and evaluate none: to
// compile a module is to load what it imports. It tells whether the VM can be used.
func (v *vm) parseAhead(r *scriptwire.Request, known forms) bool {
	v.begin(r)
	known.settle(v, v.script.main)
	name, err := json.Marshal(v.script.main.name)
	if err != nil {
		return false
	}
	return v.e.Parse(engineName, "import "+string(name)) == nil && v.failure == nil
}
