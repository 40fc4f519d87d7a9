package worker

import (
	"crypto/sha256"
	"errors"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway/internal/hooks/sandbox/quickjs"
	scriptwire "github.com/guideway-dev/guideway/internal/hooks/sandbox/wire"
)

// module is a source as the engine gets it.
type module struct {
	name, source string
	// params are those of a function's body; a module has none.
	body   bool
	params string
}

// text is what the engine parses. A function's body gets its head on a line of
// its own, so that columns stay as they are.
func (m *module) text() string {
	if !m.body {
		return m.source
	}
	return "export default async function (" + m.params + ") {\n" + m.source + "\n}"
}

// headLines is how many lines text has before the source.
func (m *module) headLines() int {
	if m.body {
		return 1
	}
	return 0
}

// script is a request's code.
type script struct {
	main    *module
	modules []*module // the library
}

func newScript(r *scriptwire.Request) *script {
	s := &script{main: &module{name: r.Name, source: r.Source, params: strings.Join(r.Params, ", ")}}
	for _, f := range r.Library {
		s.modules = append(s.modules, &module{name: f.Name, source: f.Source})
	}
	return s
}

// library gives a module by its name, or nil.
func (s *script) library(name string) *module {
	for _, m := range s.modules {
		if m.name == name {
			return m
		}
	}
	return nil
}

// find gives the user's module of a name in a stack trace, or nil.
func (s *script) find(name string) *module {
	if name == s.main.name {
		return s.main
	}
	return s.library(name)
}

// importable says in words what can be imported.
func (s *script) importable() string {
	if len(s.modules) == 0 {
		return "there are no modules to import here"
	}
	names := make([]string, len(s.modules))
	for i, m := range s.modules {
		names[i] = "'" + m.name + "'"
	}
	slices.Sort(names)
	return "only " + strings.Join(names, ", ") + " can be imported"
}

// findImport looks where a module names another one; 0 if it is not found.
func (s *script) findImport(importer, name string) (line, column int) {
	m := s.find(importer)
	if m == nil {
		return 0, 0
	}
	for _, quoted := range []string{`"` + name + `"`, `'` + name + `'`} {
		if at := strings.Index(m.source, quoted); at >= 0 {
			before := m.source[:at]
			return strings.Count(before, "\n") + 1, len([]rune(before[strings.LastIndexByte(before, '\n')+1:])) + 1
		}
	}
	return 0, 0
}

// forms remembers whether sources are function's bodies, by their hash.
type forms map[[sha256.Size]byte]bool

// maxForms bounds what a worker remembers.
const maxForms = 512

// settle finds out whether the script's source is a function's body. It is one
// if it parses as one: import and export declarations do not stand in a body,
// and return does not stand in a module outside of functions.
func (f forms) settle(v *vm, m *module) {
	key := sha256.Sum256([]byte(m.params + "\x00" + m.source))
	if body, known := f[key]; known {
		m.body = body
		return
	}
	asBody := parses(v, m, true)
	asModule := !asBody && parses(v, m, false)
	// What is neither is told of as what it looks like.
	m.body = asBody || !asModule && !looksLikeModule(m.source)
	if kind, _ := v.why(); kind != "" {
		return // stopped in the middle: nothing is known of it
	}
	if len(f) >= maxForms {
		clear(f)
	}
	f[key] = m.body
}

// parse parses a module, and those that it imports.
func (v *vm) parse(m *module) error {
	v.parsing = m
	err := v.e.Parse(engineName, m.text())
	v.parsing = nil
	return err
}

// parses tells whether a script can be parsed in one form. What is wrong with
// what it imports is not wrong with itself.
func parses(v *vm, m *module, body bool) bool {
	m.body = body
	err := v.parse(m)
	var e *quickjs.Error
	return err == nil || v.failure != nil || errors.As(err, &e) && v.script.library(e.File) != nil
}

// looksLikeModule tells whether a line begins with import or export. It only
// chooses the words for a source that is wrong in either form.
func looksLikeModule(source string) bool {
	for line := range strings.Lines(source) {
		line = strings.TrimSpace(line)
		for _, word := range []string{"export", "import"} {
			rest, found := strings.CutPrefix(line, word)
			if found && (rest == "" || strings.ContainsRune(" \t{*\"'", rune(rest[0]))) {
				return true
			}
		}
	}
	return false
}
