package install

import (
	"fmt"
	"maps"
	"slices"

	"github.com/tailscale/hujson"
)

// jsonFormat is a configuration in JSON, read with comments and trailing
// commas.
type jsonFormat struct {
	// key is the member of the root that holds the servers.
	key string
	// typed entries have a "type": "stdio".
	typed bool
	// strict clients read neither comments nor trailing commas.
	strict bool
}

var _ format = jsonFormat{}

func (j jsonFormat) lookup(src []byte, name string) (Entry, bool, error) {
	d, err := readJSON(src)
	if err != nil || d.root == nil {
		return Entry{}, false, err
	}
	n, err := j.entry(d, name)
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

// entry returns the value of an entry, or nil.
func (j jsonFormat) entry(d *jsonDoc, name string) (*hujson.Value, error) {
	n := d.root
	for _, key := range []string{j.key, name} {
		if n.Value.Kind() != '{' {
			line, column := position(d.src, n.StartOffset)
			return nil, &syntaxError{line, column, fmt.Sprintf("%q is not an object", j.key)}
		}
		next, twice := findMember(n, key)
		if twice {
			line, column := position(d.src, n.StartOffset)
			return nil, &syntaxError{line, column, fmt.Sprintf("%q is there twice in this object", key)}
		}
		if next == nil {
			return nil, nil
		}
		n = next
	}
	return n, nil
}

func (j jsonFormat) put(src []byte, name string, e Entry) ([]byte, error) {
	d, err := readJSON(src)
	if err != nil {
		return nil, err
	}
	path := []string{j.key, name}
	if d.root == nil {
		return d.set(path, j.fields(e))
	}
	n, err := j.entry(d, name)
	if err != nil {
		return nil, err
	}
	if n == nil || !j.patchable(n) {
		return d.set(path, j.fields(e))
	}
	return j.patch(d, n, path, e)
}

// patchable says whether an entry starts a program, so that what the user added
// to it can stay.
func (j jsonFormat) patchable(n *hujson.Value) bool {
	if textOf(getMember(n, "command")) == "" || getMember(n, "url") != nil {
		return false
	}
	kind := getMember(n, "type")
	env := getMember(n, "env")
	return (kind == nil || textOf(kind) == "stdio") && (env == nil || env.Value.Kind() == '{')
}

// patch changes only what differs.
func (j jsonFormat) patch(d *jsonDoc, n *hujson.Value, path []string, e Entry) ([]byte, error) {
	old, _, err := j.lookup(d.src, path[1])
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
		if d, err = d.with(append(slices.Clone(path), w.key), w.val); err != nil {
			return nil, err
		}
	}
	for _, k := range slices.Sorted(maps.Keys(e.Env)) {
		if have, ok := old.Env[k]; ok && have == e.Env[k] {
			continue
		}
		if d, err = d.with(append(slices.Clone(path), "env", k), e.Env[k]); err != nil {
			return nil, err
		}
	}
	return d.src, nil
}

// with is set, read again for the next edit.
func (d *jsonDoc) with(path []string, val any) (*jsonDoc, error) {
	src, err := d.set(path, val)
	if err != nil {
		return nil, err
	}
	return readJSON(src)
}

func (j jsonFormat) fields(e Entry) []field {
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

func (j jsonFormat) remove(src []byte, name string, hint []byte) ([]byte, error) {
	d, err := readJSON(src)
	if err != nil || d.root == nil {
		return src, err
	}
	servers := getMember(d.root, j.key)
	if servers == nil {
		return src, nil
	}
	if d, err = readJSON(d.remove(servers, name)); err != nil {
		return nil, err
	}
	servers = getMember(d.root, j.key)
	h, err := readJSON(hint)
	if err != nil || hint == nil || h.root == nil {
		if d.bare(servers) {
			return apply(d.src, edit{servers.StartOffset, servers.EndOffset, "{}"}), nil
		}
		return d.src, nil
	}
	if was := getMember(h.root, j.key); was != nil {
		return d.emptyAs(servers, h, was), nil
	}
	if !d.bare(servers) {
		return d.src, nil
	}
	if d, err = readJSON(d.remove(d.root, j.key)); err != nil {
		return nil, err
	}
	return d.emptyAs(d.root, h, h.root), nil
}

func (j jsonFormat) restore(src []byte, name string, from []byte) ([]byte, error) {
	d, err := readJSON(src)
	if err != nil {
		return nil, err
	}
	f, err := readJSON(from)
	if err != nil {
		return nil, err
	}
	n, err := j.entry(d, name)
	if err != nil {
		return nil, err
	}
	was, err := j.entry(f, name)
	if err != nil || n == nil || was == nil {
		return nil, fmt.Errorf("no entry to restore")
	}
	return apply(src, edit{n.StartOffset, n.EndOffset, string(from[was.StartOffset:was.EndOffset])}), nil
}

func (j jsonFormat) snippet(name string, e Entry) string {
	d := &jsonDoc{newline: "\n", unit: "  ", colon: ": "}
	return d.render([]field{{j.key, []field{{name, j.fields(e)}}}}, true, "")
}

func (j jsonFormat) notes(src []byte, title string) []string {
	if !j.strict {
		return nil
	}
	if root, err := parseJSONC(src); err != nil || root == nil {
		return nil
	}
	text, standard := padJSON(src), standardizeJSON(src)
	for i := range text {
		if text[i] != standard[i] {
			line, _ := position(src, i)
			return []string{fmt.Sprintf("line %d has a comment or a trailing comma, which %s may not read", line, title)}
		}
	}
	return nil
}
