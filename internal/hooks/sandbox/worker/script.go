package worker

import (
	"crypto/sha256"
	"errors"
	"slices"
	"strings"

	scriptwire "github.com/guideway-dev/guideway/internal/hooks/sandbox/protocol"
	"github.com/guideway-dev/guideway/internal/hooks/sandbox/quickjs"
	"github.com/guideway-dev/guideway/internal/platform/lists"
)

// module is a source for the engine.
type module struct {
	name, source string
	// body is set if the source is a function body, which has the parameters params.
	body   bool
	params string
}

// engineText returns the text for the engine. The head of a function body is on a separate
// line, so that columns stay unchanged.
func (m *module) engineText() string {
	if !m.body {
		return m.source
	}
	return "export default async function (" + m.params + ") {\n" + m.source + "\n}"
}

// headLines returns the number of lines that engineText adds before the source.
func (m *module) headLines() int {
	if m.body {
		return 1
	}
	return 0
}

// script is the code of a request.
type script struct {
	main    *module
	modules []*module // modules of the library
}

func newScript(r *scriptwire.Request) *script {
	s := &script{main: &module{name: r.Name, source: r.Source, params: strings.Join(r.Params, ", ")}}
	for _, f := range r.Library {
		s.modules = append(s.modules, &module{name: f.Name, source: f.Source})
	}
	return s
}

// libraryModule returns a module by its name, or nil.
func (s *script) libraryModule(name string) *module {
	for _, m := range s.modules {
		if m.name == name {
			return m
		}
	}
	return nil
}

// findModule returns the user's module with a name in a stack trace, or nil.
func (s *script) findModule(name string) *module {
	if name == s.main.name {
		return s.main
	}
	return s.libraryModule(name)
}

// importNames returns a description of the modules that can be imported.
func (s *script) importNames() string {
	if len(s.modules) == 0 {
		return "no module is available to this script"
	}
	names := lists.Map(s.modules, func(m *module) string { return "'" + m.name + "'" })
	slices.Sort(names)
	return "only " + strings.Join(names, ", ") + " can be imported"
}

// findImport returns the position of the import of module name in module importer, or 0 if
// it is not found.
func (s *script) findImport(importer, name string) (line, column int) {
	m := s.findModule(importer)
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

// forms caches whether sources are function bodies, by their hash.
type forms map[[sha256.Size]byte]bool

// maxForms is the maximum number of cached forms.
const maxForms = 512

// setForm determines whether the script's source is a function body. It is a body if it
// parses as one: a body has no import and export declarations, and a module has no return
// outside of functions.
func (f forms) setForm(v *vm, m *module) {
	key := sha256.Sum256([]byte(m.params + "\x00" + m.source))
	if body, known := f[key]; known {
		m.body = body
		return
	}
	asBody := canParse(v, m, true)
	asModule := !asBody && canParse(v, m, false)
	// For a source that is invalid in both forms, the errors are those of the form that the
	// source resembles.
	m.body = asBody || !asModule && !looksLikeModule(m.source)
	if kind, _ := v.stopReason(); kind != "" {
		return // the parser was stopped, so the form is unknown
	}
	if len(f) >= maxForms {
		clear(f)
	}
	f[key] = m.body
}

// parseModule parses a module and its imports.
func (v *vm) parseModule(m *module) error {
	v.parsing = m
	err := v.e.Parse(engineName, m.engineText())
	v.parsing = nil
	return err
}

// canParse reports whether a script can be parsed in one form. Errors in its imports are
// ignored.
func canParse(v *vm, m *module, body bool) bool {
	m.body = body
	err := v.parseModule(m)
	var e *quickjs.Error
	return err == nil || v.failure != nil || errors.As(err, &e) && v.script.libraryModule(e.File) != nil
}

// looksLikeModule reports whether a line starts with import or export. It only selects the
// error for a source that is invalid in both forms.
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
