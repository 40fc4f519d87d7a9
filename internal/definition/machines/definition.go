package machines

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"path"
	"slices"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/definition/doc"
	"github.com/guideway-dev/guideway/internal/definition/shape"
)

// File is one file of a machine.
type File struct {
	// Path is where a person finds it.
	Path string
	Data []byte
}

// Files are what a machine is read from.
type Files struct {
	Config File
	// Script is the file of the handlers; nil where there is none.
	Script *File
	// Roles are files of roles; of two roles with one name that of the earlier
	// file counts, and those of the configuration come before all.
	Roles []File
	// Alone says that nothing is known of what lies beside the configuration: a
	// script and roles that are not given are not missed.
	Alone bool
}

// Definition is a machine that loads, with what pins it.
type Definition struct {
	*Machine
	// Hash is "sha256:" and the hash of Canonical.
	Hash string
	// Canonical is the machine with its script and the roles that it uses, as
	// RFC 8785 JSON.
	Canonical string
	// File is where the configuration came from, ScriptFile the script; errors
	// in handlers name it.
	File, ScriptFile string
	// Source and Revision say which source of a catalog gives it, and what of the
	// source it is; both are empty elsewhere, and no part of the hash.
	Source, Revision string
}

// pinned is Definition.Canonical.
type pinned struct {
	Machine    json.RawMessage            `json:"machine"`
	Roles      map[string]json.RawMessage `json:"roles"`
	Script     string                     `json:"script,omitempty"`
	ScriptFile string                     `json:"scriptFile,omitempty"`
}

// Parse reads a machine. All problems are reported at once, those of the
// configuration first; the definition is nil if there is one.
func Parse(files Files) (*Definition, []guideway.Diagnostic) {
	d, _, found := parse(files)
	return d, found
}

// Check is Parse, and Lint if the machine loads.
func Check(files Files) (*Definition, []guideway.Diagnostic) {
	d, at, found := parse(files)
	if d == nil {
		return nil, found
	}
	return d, lint(d, at, files)
}

// parse is Parse, which keeps the configuration's place.
func parse(files Files) (*Definition, shape.Place, []guideway.Diagnostic) {
	file := files.Config.Path
	root, found := doc.Parse(file, files.Config.Data, doc.Limits{})
	if root == nil {
		return nil, shape.Place{}, found
	}
	p, at := newParser(file), shape.Root(root, "machine")
	if !p.Document(at, "A machine", "write one object with workflow_name, description, input, output, contexts, agents and states") {
		return nil, at, p.Found
	}
	p.Canonical = doc.Mark(root)
	m := p.machine(at)
	p.structure(at, m)
	sources := p.sources(at.Key("roles"))
	var others []guideway.Diagnostic
	for _, f := range files.Roles {
		roles, wrong := ParseRoles(f.Path, f.Data)
		others = append(others, wrong...)
		p.adopt(m, sources, roles, f)
	}
	if !slices.ContainsFunc(p.Found, func(f guideway.Diagnostic) bool { return f.Code == CodeOldDialect }) {
		p.needed(at, m, files, len(others) > 0) // one of the first dialect has other needs
	}
	found = append(append(found, p.Findings(guideway.SeverityError)...), others...)
	if len(found) > 0 {
		return nil, at, found
	}
	d := &Definition{Machine: m, File: file}
	if files.Script != nil {
		m.Script, d.ScriptFile = string(files.Script.Data), files.Script.Path
	}
	d.pin(p.Canonical, sources)
	return d, at, nil
}

// sources are the canonical texts of roles.
func (p *parser) sources(at shape.Place) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	if at.Node != nil && at.Node.Kind == doc.Object {
		for _, m := range at.Node.Members {
			out[m.Key] = p.raw(at.Key(m.Key))
		}
	}
	return out
}

// adopt adds the roles of a file that no earlier one has.
func (p *parser) adopt(m *Machine, sources map[string]json.RawMessage, roles map[string]*Role, f File) {
	if len(roles) == 0 {
		return
	}
	root, _ := doc.Parse(f.Path, f.Data, doc.Limits{})
	text := doc.Mark(root)
	if m.Roles == nil {
		m.Roles = map[string]*Role{}
	}
	for name, r := range roles {
		if m.Roles[name] == nil {
			m.Roles[name], sources[name] = r, json.RawMessage(root.Get(name).Source(text))
		}
	}
}

// needed checks that the script and the roles are there. Where a file of roles is
// broken, those that it may have are not missed.
func (p *parser) needed(at shape.Place, m *Machine, files Files, broken bool) {
	for i := range m.Agents {
		if broken || files.Alone {
			break
		}
		p.known(at.Key("agents").Index(i).Key("agent_role"), CodeRoleUnknown, "role", m.Agents[i].Role, func() []string {
			return slices.Sorted(maps.Keys(m.Roles))
		})
	}
	functions := m.Functions()
	if files.Script == nil {
		if len(functions) > 0 && !files.Alone {
			dir := scriptDir(files.Config.Path)
			p.Errorf(at.Key("states"), CodeScriptMissing, "write "+dir+"/script.js with: export default { "+functions[0]+"() { ... } }",
				"The states name handlers, and there is no script.")
		}
		return
	}
	code := newScript(string(files.Script.Data))
	for i := range m.States {
		s, one := &m.States[i], at.Key("states").Index(i)
		for key, name := range map[string]string{"pre_handler": s.Pre, "post_handler": s.Post, "transition_handler": s.Transition, "error_handler": s.OnError} {
			if name != "" && !code.defines(name) {
				p.Errorf(one.Key(key), CodeHandlerMissing, "add "+name+"() { ... } to the object that it exports, or mend the name",
					"%s has no function '%s'.", files.Script.Path, name)
			}
		}
	}
}

// scriptDir is the directory of the script of a configuration's file.
func scriptDir(config string) string {
	dir, base := path.Split(config)
	stem := base[:len(base)-len(path.Ext(base))]
	if stem == configStem {
		return path.Clean(dir)
	}
	return path.Join(dir, stem)
}

// pin makes the canonical text, with the roles that the agents play.
func (d *Definition) pin(config string, sources map[string]json.RawMessage) {
	p := pinned{Machine: json.RawMessage(config), Roles: map[string]json.RawMessage{}, Script: d.Script, ScriptFile: path.Base(path.Dir(d.ScriptFile)) + "/" + path.Base(d.ScriptFile)}
	if d.ScriptFile == "" {
		p.ScriptFile = ""
	}
	used := map[string]*Role{}
	for i := range d.Agents {
		name := d.Agents[i].Role
		if d.Roles[name] != nil { // it may be read alone
			p.Roles[name], used[name] = sources[name], d.Roles[name]
		}
	}
	d.Roles = used
	text, err := json.Marshal(p)
	if err != nil { // of texts that were read from JSON
		panic(err)
	}
	root, _ := doc.Parse("", text, doc.Limits{MaxBytes: len(text)})
	d.Canonical = string(doc.Canonical(root))
	sum := sha256.Sum256([]byte(d.Canonical))
	d.Hash = "sha256:" + hex.EncodeToString(sum[:])
}

// Pinned reads a machine from its canonical text. What it gives has the same hash.
func Pinned(text string) (*Definition, error) {
	bad := func(why string) error {
		return guideway.Errorf(guideway.CodeUnavailable, "the pinned machine does not load: %s", why)
	}
	var p pinned
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return nil, bad(err.Error())
	}
	roles, err := json.Marshal(p.Roles)
	if err != nil {
		return nil, bad(err.Error())
	}
	files := Files{Config: File{Data: p.Machine}, Roles: []File{{Data: roles}}}
	if p.ScriptFile != "" {
		files.Script = &File{Path: p.ScriptFile, Data: []byte(p.Script)}
	}
	d, found := Parse(files)
	if d == nil {
		return nil, bad(found[0].Message)
	}
	return d, nil
}
