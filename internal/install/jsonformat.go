package install

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
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
	e := Entry{Command: text(src, n.member("command"))}
	if args := n.member("args"); args != nil {
		for _, a := range args.elems {
			e.Args = append(e.Args, text(src, a))
		}
	}
	if env := n.member("env"); env != nil && len(env.members) > 0 {
		e.Env = make(map[string]string, len(env.members))
		for _, m := range env.members {
			e.Env[m.key] = text(src, m.val)
		}
	}
	return e, true, nil
}

// entry gives the node of an entry, nil if there is none.
func (j jsonFormat) entry(d *jsonDoc, name string) (*jsonNode, error) {
	n := d.root
	for _, key := range []string{j.key, name} {
		if n.kind != '{' {
			line, column := position(d.src, n.start)
			return nil, &syntaxError{line, column, fmt.Sprintf("%q is not an object", j.key)}
		}
		if n.twice(key) {
			line, column := position(d.src, n.start)
			return nil, &syntaxError{line, column, fmt.Sprintf("%q is there twice in this object", key)}
		}
		next := n.member(key)
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
	if n == nil || !j.patchable(src, n) {
		return d.set(path, j.fields(e))
	}
	return j.patch(d, n, path, e)
}

// patchable says whether an entry starts a program, so that what the user added
// to it can stay.
func (j jsonFormat) patchable(src []byte, n *jsonNode) bool {
	if n.kind != '{' || text(src, n.member("command")) == "" || n.member("url") != nil {
		return false
	}
	kind := n.member("type")
	env := n.member("env")
	return (kind == nil || text(src, kind) == "stdio") && (env == nil || env.kind == '{')
}

// patch changes only what differs.
func (j jsonFormat) patch(d *jsonDoc, n *jsonNode, path []string, e Entry) ([]byte, error) {
	old, _, err := j.lookup(d.src, path[1])
	if err != nil {
		return nil, err
	}
	var wanted []field
	if old.Command != e.Command {
		wanted = append(wanted, field{"command", e.Command})
	}
	if args := n.member("args"); args == nil || args.kind != '[' || !slices.Equal(old.Args, e.Args) {
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
	servers := d.root.member(j.key)
	if servers == nil {
		return src, nil
	}
	if d, err = readJSON(d.remove(servers, name)); err != nil {
		return nil, err
	}
	servers = d.root.member(j.key)
	h, err := readJSON(hint)
	if err != nil || hint == nil || h.root == nil {
		if d.bare(servers) {
			return apply(d.src, edit{servers.start, servers.end, "{}"}), nil
		}
		return d.src, nil
	}
	if was := h.root.member(j.key); was != nil {
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
	return apply(src, edit{n.start, n.end, string(from[was.start:was.end])}), nil
}

func (j jsonFormat) snippet(name string, e Entry) string {
	d := &jsonDoc{newline: "\n", unit: "  ", colon: ": "}
	return d.render([]field{{j.key, []field{{name, j.fields(e)}}}}, true, "")
}

func (j jsonFormat) notes(src []byte, title string) []string {
	if !j.strict {
		return nil
	}
	_, at, err := parseJSONC(src)
	if err != nil || at < 0 {
		return nil
	}
	line, _ := position(src, min(at, len(bytes.TrimRight(src, "\n"))))
	return []string{fmt.Sprintf("line %d has a comment or a trailing comma, which %s may not read", line, title)}
}
