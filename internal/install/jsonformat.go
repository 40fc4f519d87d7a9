package install

import (
	"fmt"
	"maps"
	"slices"

	"github.com/tailscale/hujson"
)

// jsonFormat is a configuration in JSON, parsed with comments and trailing commas.
type jsonFormat struct {
	// key is the member of the root that contains the servers.
	key string
	// typed reports whether entries have the member "type": "stdio".
	typed bool
	// strict reports whether the client may not accept comments and trailing commas.
	strict bool
}

var _ format = jsonFormat{}

func (j jsonFormat) lookupEntry(src []byte, name string) (Entry, bool, error) {
	d, err := readJSON(src)
	if err != nil || d.root == nil {
		return Entry{}, false, err
	}
	n, err := j.findEntry(d, name)
	if err != nil || n == nil {
		return Entry{}, false, err
	}
	e := Entry{Command: textOf(getMember(n, "command"))}
	if args := getMember(n, "args"); args != nil && args.Value.Kind() == '[' {
		for _, a := range args.Value.(*hujson.Array).Elements {
			e.Args = append(e.Args, textOf(&a))
		}
	}
	if env := getMember(n, "env"); env != nil && len(membersOf(env)) > 0 {
		e.Env = make(map[string]string, len(membersOf(env)))
		for _, m := range membersOf(env) {
			e.Env[textOf(&m.Name)] = textOf(&m.Value)
		}
	}
	return e, true, nil
}

// findEntry returns the value of an entry, or nil.
func (j jsonFormat) findEntry(d *jsonDoc, name string) (*hujson.Value, error) {
	n := d.root
	for _, key := range []string{j.key, name} {
		if n.Value.Kind() != '{' {
			line, column := lineAndColumn(d.src, n.StartOffset)
			return nil, &syntaxError{line, column, fmt.Sprintf("%q is not an object", j.key)}
		}
		next, twice := findMember(n, key)
		if twice {
			line, column := lineAndColumn(d.src, n.StartOffset)
			return nil, &syntaxError{line, column, fmt.Sprintf("%q occurs twice in this object", key)}
		}
		if next == nil {
			return nil, nil
		}
		n = next
	}
	return n, nil
}

func (j jsonFormat) putEntry(src []byte, name string, e Entry) ([]byte, error) {
	d, err := readJSON(src)
	if err != nil {
		return nil, err
	}
	path := []string{j.key, name}
	if d.root == nil {
		return d.setValue(path, j.entryFields(e))
	}
	n, err := j.findEntry(d, name)
	if err != nil {
		return nil, err
	}
	if n == nil || !j.isPatchable(n) {
		return d.setValue(path, j.entryFields(e))
	}
	return j.patchEntry(d, n, path, e)
}

// isPatchable reports whether an entry starts a program, so that the user's additions can
// stay.
func (j jsonFormat) isPatchable(n *hujson.Value) bool {
	if textOf(getMember(n, "command")) == "" || getMember(n, "url") != nil {
		return false
	}
	kind := getMember(n, "type")
	env := getMember(n, "env")
	return (kind == nil || textOf(kind) == "stdio") && (env == nil || env.Value.Kind() == '{')
}

// patchEntry changes only the members that differ.
func (j jsonFormat) patchEntry(d *jsonDoc, n *hujson.Value, path []string, e Entry) ([]byte, error) {
	old, _, err := j.lookupEntry(d.src, path[1])
	if err != nil {
		return nil, err
	}
	var wanted []field
	if old.Command != e.Command {
		wanted = append(wanted, field{"command", e.Command})
	}
	if args := getMember(n, "args"); args == nil || args.Value.Kind() != '[' || !slices.Equal(old.Args, e.Args) {
		wanted = append(wanted, field{"args", e.Args})
	}
	for _, w := range wanted {
		if d, err = d.withValue(append(slices.Clone(path), w.key), w.val); err != nil {
			return nil, err
		}
	}
	for _, k := range slices.Sorted(maps.Keys(e.Env)) {
		if have, ok := old.Env[k]; ok && have == e.Env[k] {
			continue
		}
		if d, err = d.withValue(append(slices.Clone(path), "env", k), e.Env[k]); err != nil {
			return nil, err
		}
	}
	return d.src, nil
}

// withValue sets a value and parses the result for the next edit.
func (d *jsonDoc) withValue(path []string, val any) (*jsonDoc, error) {
	src, err := d.setValue(path, val)
	if err != nil {
		return nil, err
	}
	return readJSON(src)
}

func (j jsonFormat) entryFields(e Entry) []field {
	var f []field
	if j.typed {
		f = append(f, field{"type", "stdio"})
	}
	f = append(f, field{"command", e.Command}, field{"args", e.Args})
	if len(e.Env) > 0 {
		var env []field
		for _, k := range slices.Sorted(maps.Keys(e.Env)) {
			env = append(env, field{k, e.Env[k]})
		}
		f = append(f, field{"env", env})
	}
	return f
}

func (j jsonFormat) removeEntry(src []byte, name string, hint []byte) ([]byte, error) {
	d, err := readJSON(src)
	if err != nil || d.root == nil {
		return src, err
	}
	servers := getMember(d.root, j.key)
	if servers == nil {
		return src, nil
	}
	if d, err = readJSON(d.removeMember(servers, name)); err != nil {
		return nil, err
	}
	servers = getMember(d.root, j.key)
	h, err := readJSON(hint)
	if err != nil || hint == nil || h.root == nil {
		if d.isEmpty(servers) {
			return applyEdits(d.src, edit{servers.StartOffset, servers.EndOffset, "{}"}), nil
		}
		return d.src, nil
	}
	if was := getMember(h.root, j.key); was != nil {
		return d.emptyAs(servers, h, was), nil
	}
	if !d.isEmpty(servers) {
		return d.src, nil
	}
	if d, err = readJSON(d.removeMember(d.root, j.key)); err != nil {
		return nil, err
	}
	return d.emptyAs(d.root, h, h.root), nil
}

func (j jsonFormat) restoreEntry(src []byte, name string, from []byte) ([]byte, error) {
	d, err := readJSON(src)
	if err != nil {
		return nil, err
	}
	f, err := readJSON(from)
	if err != nil {
		return nil, err
	}
	n, err := j.findEntry(d, name)
	if err != nil {
		return nil, err
	}
	was, err := j.findEntry(f, name)
	if err != nil {
		return nil, err
	}
	if n == nil || was == nil {
		return nil, errNothingToRestore
	}
	return applyEdits(src, edit{n.StartOffset, n.EndOffset, string(from[was.StartOffset:was.EndOffset])}), nil
}

func (j jsonFormat) entrySnippet(name string, e Entry) string {
	d := &jsonDoc{newline: "\n", unit: "  ", colon: ": "}
	return d.renderValue([]field{{j.key, []field{{name, j.entryFields(e)}}}}, true, "")
}

func (j jsonFormat) fileNotes(src []byte, title string) []string {
	if !j.strict {
		return nil
	}
	if root, err := parseJSONC(src); err != nil || root == nil {
		return nil
	}
	text, standard := padJSON(src), standardizeJSON(src)
	for i := range text {
		if text[i] != standard[i] {
			line, _ := lineAndColumn(src, i)
			return []string{fmt.Sprintf("line %d has a comment or a trailing comma, which %s may not accept", line, title)}
		}
	}
	return nil
}
