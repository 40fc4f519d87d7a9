package definition

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"maps"
	"path"
	"slices"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/digest"
	"github.com/guideway-dev/guideway/internal/workflow/doc"
	"github.com/guideway-dev/guideway/internal/workflow/shape"
	"go.yaml.in/yaml/v3"
)

// File is one file of a machine.
type File struct {
	// Path is the path of the file as diagnostics show it.
	Path string
	Data []byte
}

// Files are the files of a machine.
type Files struct {
	Config File
	// Script is the file of the handlers, or nil.
	Script *File
	// Roles are the role files. If several files define a role, the first one is used;
	// roles of the configuration have precedence.
	Roles []File
	// ScriptDir is the directory of the script, as diagnostics show it. If it is empty, the
	// path of the configuration determines it.
	ScriptDir string
	// Alone reports that only the configuration is available: a missing script or role is
	// not an error.
	Alone bool
}

// Definition is a valid machine with its hash.
type Definition struct {
	*Machine
	// Hash is "sha256:" and the hash of Canonical.
	Hash string
	// Canonical is the machine with its script and its used roles, as RFC 8785 JSON.
	Canonical string
	// File is the path of the configuration, ScriptFile the path of the script, which
	// errors in handlers name.
	File, ScriptFile string
	// Source and Revision are the catalog source and its revision; empty if the machine
	// does not come from a catalog, and not part of the hash.
	Source, Revision string
}

// pinnedMachine is the content of Definition.Canonical.
type pinnedMachine struct {
	Machine    json.RawMessage            `json:"machine"`
	Roles      map[string]json.RawMessage `json:"roles"`
	Script     string                     `json:"script,omitempty"`
	ScriptFile string                     `json:"scriptFile,omitempty"`
}

// Parse parses a machine. It returns all errors, those of the configuration first; the
// definition is nil if there are any.
func Parse(files Files) (*Definition, []guideway.Diagnostic) {
	d, _, found := parseFiles(files)
	return d, found
}

// Check parses a machine like Parse. If the machine loads, it also runs the linter.
func Check(files Files) (*Definition, []guideway.Diagnostic) {
	d, at, found := parseFiles(files)
	if d == nil {
		return nil, found
	}
	return d, lintMachine(d, at, files)
}

// parseFiles parses a machine like Parse, and also returns the place of the configuration.
func parseFiles(files Files) (*Definition, shape.Place, []guideway.Diagnostic) {
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
	m := p.readMachine(at)
	p.checkStructure(at, m)
	sources := p.roleSources(at.Key("roles"))
	var others []guideway.Diagnostic
	for _, f := range files.Roles {
		roles, wrong := ParseRoles(f.Path, f.Data)
		others = append(others, wrong...)
		p.addRoles(m, sources, roles, f)
	}
	if !slices.ContainsFunc(p.Found, func(f guideway.Diagnostic) bool { return f.Code == CodeOldDialect }) {
		p.checkReferences(at, m, files, len(others) > 0) // the older dialect has different references
	}
	found = append(append(found, p.Findings(guideway.SeverityError)...), others...)
	if len(found) > 0 {
		return nil, at, found
	}
	d := &Definition{Machine: m, File: file}
	if files.Script != nil {
		m.Script, d.ScriptFile = string(files.Script.Data), files.Script.Path
	}
	d.setCanonical(p.Canonical, sources)
	return d, at, nil
}

// roleSources returns the canonical texts of roles.
func (p *parser) roleSources(at shape.Place) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	if at.Node != nil && at.Node.Kind == doc.Object {
		for _, m := range at.Node.Members {
			out[m.Key] = p.rawJSON(at.Key(m.Key))
		}
	}
	return out
}

// addRoles adds the roles of a file that no earlier file defines.
func (p *parser) addRoles(m *Machine, sources map[string]json.RawMessage, roles map[string]*Role, f File) {
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

// checkReferences checks that the roles, the script and its handlers exist. If a role file
// is invalid, missing roles are not reported.
func (p *parser) checkReferences(at shape.Place, m *Machine, files Files, broken bool) {
	for i := range m.Agents {
		if broken || files.Alone {
			break
		}
		p.checkKnown(at.Key("agents").Index(i).Key("agent_role"), CodeRoleUnknown, "role", m.Agents[i].Role, func() []string {
			return slices.Sorted(maps.Keys(m.Roles))
		})
	}
	functions := m.Functions()
	if files.Script == nil {
		if len(functions) > 0 && !files.Alone {
			dir := cmp.Or(files.ScriptDir, scriptDir(files.Config.Path))
			p.Errorf(at.Key("states"), CodeScriptMissing, "write "+dir+"/script.js with: export default { "+functions[0]+"() { ... } }",
				"The states refer to handlers, but there is no script.")
		}
		return
	}
	code := newScriptIndex(string(files.Script.Data))
	for i := range m.States {
		s, one := &m.States[i], at.Key("states").Index(i)
		for key, name := range map[string]string{"pre_handler": s.Pre, "post_handler": s.Post, "transition_handler": s.Transition, "error_handler": s.OnError} {
			if name != "" && !code.definesFunction(name) {
				p.Errorf(one.Key(key), CodeHandlerMissing, "add "+name+"() { ... } to the exported object, or fix the name",
					"%s has no function '%s'.", files.Script.Path, name)
			}
		}
	}
}

// scriptDir returns the directory of a configuration's script.
func scriptDir(config string) string {
	dir, base := path.Split(config)
	stem := base[:len(base)-len(path.Ext(base))]
	if stem == configStem || stem == configStemOld {
		return path.Clean(dir)
	}
	return path.Join(dir, stem)
}

// setCanonical sets the canonical text and the hash, and removes the roles that no agent
// has.
func (d *Definition) setCanonical(config string, sources map[string]json.RawMessage) {
	p := pinnedMachine{Machine: json.RawMessage(config), Roles: map[string]json.RawMessage{}, Script: d.Script, ScriptFile: path.Base(path.Dir(d.ScriptFile)) + "/" + path.Base(d.ScriptFile)}
	if d.ScriptFile == "" {
		p.ScriptFile = ""
	}
	used := map[string]*Role{}
	for i := range d.Agents {
		name := d.Agents[i].Role
		if d.Roles[name] != nil { // the role is nil if only the configuration is available
			p.Roles[name], used[name] = sources[name], d.Roles[name]
		}
	}
	d.Roles = used
	text, err := json.Marshal(p)
	if err != nil { // impossible for texts that were parsed from JSON
		panic(err)
	}
	root, _ := doc.Parse("", text, doc.Limits{MaxBytes: len(text)})
	d.Canonical = string(doc.Canonical(root))
	d.Hash = "sha256:" + digest.Hex(d.Canonical)
}

// Pinned parses a machine from its canonical text. The result has the same hash.
func Pinned(text string) (*Definition, error) {
	bad := func(why string) error {
		return guideway.Errorf(guideway.CodeUnavailable, "%s", why)
	}
	var p pinnedMachine
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

// Kind is the kind of a document of the dialect.
type Kind = shape.Kind

// The kinds. A script is not a document.
const (
	KindMachine Kind = "machine"
	KindRoles   Kind = "roles"
)

// Kinds returns all kinds.
func Kinds() []Kind { return []Kind{KindMachine, KindRoles} }

// Guess returns the kind of a document by its members, and for roles also by the name of
// the file. It returns "" for a document of another dialect.
func Guess(file string, root *doc.Node) Kind {
	if root == nil || root.Kind != doc.Object {
		return ""
	}
	if root.Get("workflow_name") != nil && (root.Get("states") != nil || root.Get("agents") != nil || root.Get("contexts") != nil) {
		return KindMachine
	}
	roles := 0
	for i := range root.Members {
		if root.Members[i].Key == "$schema" {
			continue
		}
		value := root.Members[i].Value
		if roles++; value.Kind != doc.Object || value.Get("systemMessage") == nil && value.Get("system_message") == nil && stemOf(path.Base(file)) != "roles" {
			return ""
		}
	}
	if roles == 0 {
		return ""
	}
	return KindRoles
}

//go:embed schema.json
var schemaText []byte

// Schema returns the published JSON Schema (draft-07) of a kind of document, or nil for an
// unknown kind. It accepts the same documents as Parse, except for rules that a schema
// cannot express.
func Schema(kind Kind) []byte {
	switch kind {
	case KindMachine:
		return bytes.Clone(schemaText)
	case KindRoles:
		return rolesSchema()
	default:
		return nil
	}
}

// rolesSchema returns the schema of a role file, which is the schema of the member 'roles'
// of a configuration.
func rolesSchema() []byte {
	var whole struct {
		Properties struct {
			Roles map[string]json.RawMessage `json:"roles"`
		} `json:"properties"`
	}
	if err := json.Unmarshal(schemaText, &whole); err != nil { // impossible: a test covers the embedded schema
		panic(err)
	}
	roles := whole.Properties.Roles
	roles["$schema"], roles["title"] = json.RawMessage(`"http://json-schema.org/draft-07/schema#"`), json.RawMessage(`"Guideway agent roles"`)
	roles["properties"] = json.RawMessage(`{"$schema": {"type": "string", "description": "The address of this schema, for editors."}}`)
	out, err := json.MarshalIndent(roles, "", "  ")
	if err != nil {
		panic(err)
	}
	return out
}

// ReviewText returns all that the hash covers, except for the script, as YAML for a person:
// the configuration and the roles of the agents.
func (d *Definition) ReviewText() (string, error) {
	var parts map[string]json.RawMessage
	err := json.Unmarshal([]byte(d.Canonical), &parts)
	if err == nil {
		delete(parts, "script")
	}
	var text []byte
	if err == nil {
		text, err = json.Marshal(parts)
	}
	var root yaml.Node
	if err == nil {
		err = yaml.Unmarshal(text, &root) // YAML includes JSON
	}
	if err == nil {
		clearStyle(&root)
		text, err = yaml.Marshal(&root)
	}
	if err != nil {
		return "", guideway.Errorf(guideway.CodeInternal, "show the machine %s: %w", d.Name, err)
	}
	return string(text), nil
}

// clearStyle replaces the notation of JSON by that of YAML: lines instead of brackets, and
// long texts with their line breaks.
func clearStyle(n *yaml.Node) {
	n.Style = 0
	for _, child := range n.Content {
		clearStyle(child)
	}
}
