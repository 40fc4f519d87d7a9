package install

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// jsonFormat is a configuration in JSON, parsed with comments and trailing commas.
type jsonFormat struct {
	// key is the member of the root that contains the servers.
	key string
	// shape is the form of an entry.
	shape shape
	// strict reports whether the client may not accept comments and trailing commas.
	strict bool
}

// shape is the form of the entries of a client.
type shape struct {
	// wrap is the member of an entry that contains the connection. It is empty if the
	// connection is the entry.
	wrap string
	// local and remote are the values of the member type of a program and of a URL. They are
	// empty if entries have no such member.
	local, remote string
	// url is the member of the URL, and env that of the environment variables.
	url, env string
	// list reports whether the member command is a list that includes the arguments.
	list bool
	// more are further members of a new entry.
	more []field
}

var _ format = jsonFormat{}

// connectionOf returns the path of the connection in an entry, and its value.
func (s shape) connectionOf(path []string, n *hujson.Value) ([]string, *hujson.Value) {
	if s.wrap != "" {
		if inner := getMember(n, s.wrap); inner != nil {
			return append(slices.Clone(path), s.wrap), inner
		}
	}
	return path, n
}

func (j jsonFormat) lookupEntry(src []byte, name string) (Entry, bool, error) {
	d, err := readJSON(src)
	if err != nil || d.root == nil {
		return Entry{}, false, err
	}
	n, err := j.findEntry(d, name)
	if err != nil || n == nil {
		return Entry{}, false, err
	}
	_, n = j.shape.connectionOf(nil, n)
	e := Entry{Command: textOf(getMember(n, "command")), URL: textOf(getMember(n, j.shape.url))}
	if e.Args = textsOf(getMember(n, "args")); j.shape.list {
		if e.Args = textsOf(getMember(n, "command")); len(e.Args) > 0 {
			e.Command, e.Args = e.Args[0], e.Args[1:]
		}
	}
	if env := getMember(n, j.shape.env); env != nil && len(membersOf(env)) > 0 {
		e.Env = make(map[string]string, len(membersOf(env)))
		for _, m := range membersOf(env) {
			e.Env[textOf(&m.Name)] = textOf(&m.Value)
		}
	}
	if headers := getMember(n, "headers"); headers != nil {
		e.Authorization = textOf(getMember(headers, authorizationKey(headers)))
	}
	return e, true, nil
}

// authorizationKey returns the name of the header Authorization as an object has it.
func authorizationKey(headers *hujson.Value) string {
	for _, m := range membersOf(headers) {
		if name := textOf(&m.Name); strings.EqualFold(name, authorizationHeader) {
			return name
		}
	}
	return authorizationHeader
}

// textsOf returns the texts of an array, or nil for another value.
func textsOf(n *hujson.Value) []string {
	if n == nil {
		return nil
	}
	var texts []string
	if array, ok := n.Value.(*hujson.Array); ok {
		for i := range array.Elements {
			texts = append(texts, textOf(&array.Elements[i]))
		}
	}
	return texts
}

// findEntry returns the value of an entry, or nil.
func (j jsonFormat) findEntry(d *jsonDoc, name string) (*hujson.Value, error) {
	n := d.root
	for _, key := range []string{j.key, name} {
		if n.Value.Kind() != '{' {
			return nil, d.kindError(n, j.key, "an object")
		}
		next, twice := findMember(n, key)
		if twice {
			return nil, d.twiceError(n, key)
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
		return d.setValue(path, j.shape.entryFields(e))
	}
	n, err := j.findEntry(d, name)
	if err != nil {
		return nil, err
	}
	if n == nil {
		return d.setValue(path, j.shape.entryFields(e))
	}
	old, _, err := j.lookupEntry(src, name)
	if err != nil {
		return nil, err
	}
	at, n := j.shape.connectionOf(path, n)
	if !j.shape.isPatchable(n, old, e) {
		return d.setValue(path, j.shape.entryFields(e))
	}
	return j.patchEntry(d, n, at, old, e)
}

// isPatchable reports whether an entry has the same kind of connection as e, so that the
// user's additions can stay.
func (s shape) isPatchable(n *hujson.Value, old, e Entry) bool {
	object := func(key string) bool { v := getMember(n, key); return v == nil || v.Value.Kind() == '{' }
	kind := getMember(n, "type")
	if e.URL != "" {
		return old.URL != "" && getMember(n, "command") == nil && textOf(kind) == s.remote &&
			object("headers") && (old.Authorization == "" || e.Authorization != "")
	}
	for _, key := range []string{"url", "httpUrl", "serverUrl"} {
		if getMember(n, key) != nil {
			return false
		}
	}
	return old.Command != "" && (kind == nil || slices.Contains([]string{"stdio", "local"}, textOf(kind))) && object(s.env)
}

// patchEntry changes only the members that differ.
func (j jsonFormat) patchEntry(d *jsonDoc, n *hujson.Value, at []string, old, e Entry) ([]byte, error) {
	type change struct {
		path []string
		val  any
	}
	var wanted []change
	args := getMember(n, "args")
	switch {
	case e.URL != "":
		if old.URL != e.URL {
			wanted = append(wanted, change{[]string{j.shape.url}, e.URL})
		}
		if old.Authorization != e.Authorization {
			key := authorizationHeader
			if headers := getMember(n, "headers"); headers != nil {
				key = authorizationKey(headers)
			}
			wanted = append(wanted, change{[]string{"headers", key}, e.Authorization})
		}
	case j.shape.list:
		if old.Command != e.Command || !slices.Equal(old.Args, e.Args) {
			wanted = append(wanted, change{[]string{"command"}, append([]string{e.Command}, e.Args...)})
		}
	default:
		if old.Command != e.Command {
			wanted = append(wanted, change{[]string{"command"}, e.Command})
		}
		if args == nil || args.Value.Kind() != '[' || !slices.Equal(old.Args, e.Args) {
			wanted = append(wanted, change{[]string{"args"}, e.Args})
		}
	}
	for _, k := range slices.Sorted(maps.Keys(e.Env)) {
		if have, ok := old.Env[k]; !ok || have != e.Env[k] {
			wanted = append(wanted, change{[]string{j.shape.env, k}, e.Env[k]})
		}
	}
	var err error
	for _, w := range wanted {
		if d, err = d.withValue(slices.Concat(at, w.path), w.val); err != nil {
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

// entryFields returns the members of a new entry.
func (s shape) entryFields(e Entry) []field {
	var f []field
	add := func(key string, val any) { f = append(f, field{key, val}) }
	kind := s.local
	if e.URL != "" {
		kind = s.remote
	}
	if kind != "" {
		add("type", kind)
	}
	switch {
	case e.URL != "":
		add(s.url, e.URL)
		if e.Authorization != "" {
			add("headers", []field{{authorizationHeader, e.Authorization}})
		}
	case s.list:
		add("command", append([]string{e.Command}, e.Args...))
	default:
		add("command", e.Command)
		add("args", e.Args)
	}
	if len(e.Env) > 0 {
		add(s.env, variableFields(e.Env))
	}
	if s.wrap != "" {
		f = []field{{s.wrap, f}}
	}
	return append(f, s.more...)
}

// variableFields returns environment variables as members in order.
func variableFields(env map[string]string) []field {
	var list []field
	for _, k := range slices.Sorted(maps.Keys(env)) {
		list = append(list, field{k, env[k]})
	}
	return list
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
	return renderSnippet([]field{{j.key, []field{{name, j.shape.entryFields(e)}}}})
}

// renderSnippet returns an object as text to paste.
func renderSnippet(fields []field) string {
	d := &jsonDoc{newline: "\n", unit: "  ", colon: ": "}
	return d.renderValue(fields, true, "")
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
