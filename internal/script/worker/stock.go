package worker

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"slices"

	"github.com/guideway-dev/guideway/internal/script/wire"
	"modernc.org/quickjs"
)

// The bounds of what is parsed before anybody asks for it.
const (
	// maxParsed is how many VMs wait with a script that they have parsed.
	maxParsed = 2
	// maxParsedSource bounds such a script with its library, in bytes.
	maxParsedSource = 128 << 10
)

// stock are the VMs that wait for a call. One has seen no script. The others have
// parsed one that ran before, and nothing of it has run in them: a call of that
// very script need not wait for the parser. Each is for one call.
type stock struct {
	code   prelude
	blank  *vm
	parsed []parsedVM // those used longest ago first
	next   *wire.Request
}

type parsedVM struct {
	key scriptKey
	v   *vm
}

type scriptKey [sha256.Size]byte

// keyOf tells scripts apart: by all that the engine gets of one.
func keyOf(r *wire.Request) scriptKey {
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

func fileTexts(files []wire.File) []string {
	texts := make([]string, 0, 2*len(files))
	for _, f := range files {
		texts = append(texts, f.Name, f.Source)
	}
	return texts
}

// fill makes the VMs that are missing.
func (s *stock) fill(known forms) error {
	if s.blank == nil {
		v, err := newVM(s.code)
		if err != nil {
			return err
		}
		s.blank = v
	}
	r := s.next
	s.next = nil
	if r == nil {
		return nil
	}
	v, err := newVM(s.code)
	if err != nil {
		return err
	}
	if !v.parseAhead(r, known) {
		return v.close()
	}
	s.parsed = append(s.parsed, parsedVM{keyOf(r), v})
	if len(s.parsed) <= maxParsed {
		return nil
	}
	oldest := s.parsed[0].v
	s.parsed = slices.Delete(s.parsed, 0, 1)
	return oldest.close()
}

// take gives a VM for a call.
func (s *stock) take(r *wire.Request) *vm {
	if !r.Check && len(s.parsed) > 0 {
		key := keyOf(r)
		i := slices.IndexFunc(s.parsed, func(p parsedVM) bool { return p.key == key })
		if i >= 0 {
			v := s.parsed[i].v
			s.parsed = slices.Delete(s.parsed, i, i+1)
			return v
		}
	}
	v := s.blank
	s.blank = nil
	return v
}

// ran notes a script that ran as it should: it may come again.
func (s *stock) ran(r *wire.Request) {
	size := len(r.Source)
	for _, f := range r.Library {
		size += len(f.Source)
	}
	if r.Check || size > maxParsedSource {
		return
	}
	key := keyOf(r)
	if !slices.ContainsFunc(s.parsed, func(p parsedVM) bool { return p.key == key }) {
		s.next = &wire.Request{Name: r.Name, Source: r.Source, Params: r.Params, Library: r.Library, Limits: r.Limits}
	}
}

// parseAhead has the engine load the script's modules, and evaluate none: to
// compile a module is to load what it imports. It tells whether the VM can be used.
func (v *vm) parseAhead(r *wire.Request, known forms) bool {
	v.begin(r)
	known.settle(v, v.script.main)
	name, err := json.Marshal(v.script.main.name)
	if err != nil {
		return false
	}
	_, err = v.q.Compile("import "+string(name), quickjs.EvalModule)
	return err == nil && v.failure == nil
}
