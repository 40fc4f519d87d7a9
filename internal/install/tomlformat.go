package install

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// tomlFormat is a configuration in TOML: a table of servers, edited as text. Every edit is
// checked by parsing: only the entry may differ.
type tomlFormat struct {
	// key is the table that contains the servers.
	key string
}

var _ format = tomlFormat{}

func (t tomlFormat) lookupEntry(src []byte, name string) (Entry, bool, error) {
	tree, err := parseTOML(src)
	if err != nil {
		return Entry{}, false, err
	}
	servers, ok := tree[t.key].(map[string]any)
	if !ok && tree[t.key] != nil {
		return Entry{}, false, &syntaxError{message: fmt.Sprintf("%q is not a table", t.key)}
	}
	raw, found := servers[name]
	if !found {
		return Entry{}, false, nil
	}
	table, _ := raw.(map[string]any)
	e := Entry{}
	e.Command, _ = table["command"].(string)
	e.URL, _ = table["url"].(string)
	e.Authorization, _ = table["bearer_token_env_var"].(string)
	if args, ok := table["args"].([]any); ok {
		for _, a := range args {
			s, _ := a.(string)
			e.Args = append(e.Args, s)
		}
	}
	if env, ok := table["env"].(map[string]any); ok && len(env) > 0 {
		e.Env = make(map[string]string, len(env))
		for k, v := range env {
			// Other values are not variables that Entry can hold; they stay in the file.
			if text, ok := v.(string); ok {
				e.Env[k] = text
			}
		}
	}
	return e, true, nil
}

func (t tomlFormat) putEntry(src []byte, name string, e Entry) ([]byte, error) {
	before, err := parseTOML(src)
	if err != nil {
		return nil, err
	}
	items, err := scanTOML(src)
	if err != nil {
		return nil, err
	}
	old, found, err := t.lookupEntry(src, name)
	if err != nil {
		return nil, err
	}
	var after []byte
	if found {
		after, err = t.patchEntry(src, name, old, e)
	} else {
		after = t.addEntry(src, items, name, e)
	}
	if err != nil {
		return nil, err
	}
	return after, t.checkEdit(before, after, name)
}

// checkEdit refuses an edit that changed anything but the entry.
func (t tomlFormat) checkEdit(before map[string]any, after []byte, name string) error {
	tree, err := parseTOML(after)
	if err != nil {
		return errTOMLForm
	}
	if !sameValue(t.withoutEntry(before, name), t.withoutEntry(tree, name)) {
		return errTOMLForm
	}
	return nil
}

// withoutEntry returns a document without an entry, and without its table if the table is
// then empty.
func (t tomlFormat) withoutEntry(tree map[string]any, name string) map[string]any {
	tree = maps.Clone(tree)
	if servers, ok := tree[t.key].(map[string]any); ok {
		servers = maps.Clone(servers)
		delete(servers, name)
		if tree[t.key] = servers; len(servers) == 0 {
			delete(tree, t.key)
		}
	}
	return tree
}

// sameValue reports whether two values are deeply equal. Unlike reflect.DeepEqual, it treats
// nan as equal to nan.
func sameValue(a, b any) bool {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		return ok && maps.EqualFunc(x, y, sameValue)
	case []any:
		y, ok := b.([]any)
		return ok && slices.EqualFunc(x, y, sameValue)
	case float64:
		y, ok := b.(float64)
		return ok && (x == y || x != x && y != y)
	default:
		return reflect.DeepEqual(a, b)
	}
}

// addEntry writes a section at the end, or a member into the inline table of servers.
func (t tomlFormat) addEntry(src []byte, items []tomlItem, name string, e Entry) []byte {
	for _, item := range items {
		if item.header || !slices.Equal(item.path, []string{t.key}) {
			continue
		}
		inside := bytes.TrimRight(src[item.value+1:item.end-1], " \t")
		at, text := item.value+1+len(inside), name+" = "+inlineEntry(e)
		if len(bytes.TrimSpace(inside)) > 0 {
			text = ", " + text
		} else {
			text = " " + text
		}
		if src[at] == '}' {
			text += " "
		}
		return applyEdits(src, edit{at, at, text})
	}
	nl := newlineOf(src)
	text := strings.ReplaceAll(t.entrySnippet(name, e)+"\n", "\n", nl)
	body := bytes.TrimPrefix(src, bom)
	switch {
	case len(bytes.TrimSpace(body)) == 0:
	case !bytes.HasSuffix(body, []byte("\n")):
		text = nl + nl + text
	case !bytes.HasSuffix(body, []byte(nl+nl)):
		text = nl + text
	}
	return append(bytes.Clone(src), text...)
}

func newlineOf(src []byte) string {
	if i := bytes.IndexByte(src, '\n'); i > 0 && src[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

// patchEntry changes only the values that differ, one at a time.
func (t tomlFormat) patchEntry(src []byte, name string, old, e Entry) ([]byte, error) {
	type leaf struct {
		path []string
		text string
	}
	var leaves []leaf
	if (old.URL == "") != (e.URL == "") || old.Authorization != "" && e.Authorization == "" {
		return t.replaceEntry(src, name, e)
	}
	for _, l := range []struct{ key, old, val string }{
		{"command", old.Command, e.Command}, {"url", old.URL, e.URL}, {"bearer_token_env_var", old.Authorization, e.Authorization},
	} {
		if l.old != l.val {
			leaves = append(leaves, leaf{[]string{l.key}, quoteTOML(l.val)})
		}
	}
	if !slices.Equal(old.Args, e.Args) {
		leaves = append(leaves, leaf{[]string{"args"}, listTOML(e.Args)})
	}
	for _, k := range slices.Sorted(maps.Keys(e.Env)) {
		if have, ok := old.Env[k]; !ok || have != e.Env[k] {
			leaves = append(leaves, leaf{[]string{"env", k}, quoteTOML(e.Env[k])})
		}
	}
	var err error
	for _, l := range leaves {
		if src, err = t.setLeaf(src, name, l.path, l.text, e); err != nil {
			return nil, err
		}
	}
	return src, nil
}

// replaceEntry replaces an entry by one with another kind of connection.
func (t tomlFormat) replaceEntry(src []byte, name string, e Entry) ([]byte, error) {
	bare, err := t.removeEntry(src, name, nil)
	if err != nil {
		return nil, err
	}
	items, err := scanTOML(bare)
	if err != nil {
		return nil, err
	}
	return t.addEntry(bare, items, name, e), nil
}

// setLeaf sets one value of an entry in any of its forms.
func (t tomlFormat) setLeaf(src []byte, name string, leaf []string, text string, e Entry) ([]byte, error) {
	items, err := scanTOML(src)
	if err != nil {
		return nil, err
	}
	entry := []string{t.key, name}
	full := slices.Concat(entry, leaf)
	parent := full[:len(full)-1]
	var last *tomlItem // last is the last expression directly in the leaf's own table.
	inside := false
	for i, item := range items {
		switch {
		case !item.header && slices.Equal(item.path, full):
			return applyEdits(src, edit{item.value, item.end, text}), nil
		case !item.header && slices.Equal(item.path, slices.Concat(entry, []string{"env"})) && leaf[0] == "env":
			return t.replaceInlineEnv(src, item, name, e)
		case !item.header && slices.Equal(item.path, entry):
			return t.replaceInline(src, item, name, e)
		case item.header:
			inside = slices.Equal(item.path, parent)
		}
		if inside {
			last = &items[i]
		}
	}
	if last != nil {
		line := newlineOf(src) + bareOrQuoted(leaf[len(leaf)-1]) + " = " + text
		at := lineEnd(src, last.end)
		return applyEdits(src, edit{at, at, line}), nil
	}
	if leaf[0] == "env" && !hasHeader(items, parent) {
		return t.setLeaf(src, name, leaf[:1], inlineTOML(e.Env), e)
	}
	return nil, errTOMLForm
}

// replaceInline rewrites an entry that is an inline table, unless that would lose content.
func (t tomlFormat) replaceInline(src []byte, item tomlItem, name string, e Entry) ([]byte, error) {
	tree, err := parseTOML(src)
	if err != nil {
		return nil, err
	}
	table := t.entryTable(tree, name)
	for k := range table {
		if !slices.Contains([]string{"command", "args", "env", "url", "bearer_token_env_var"}, k) {
			return nil, errTOMLForm
		}
	}
	if losesVariable(table, e) {
		return nil, errTOMLForm
	}
	return applyEdits(src, edit{item.value, item.end, inlineEntry(e)}), nil
}

// replaceInlineEnv rewrites variables that are an inline table, unless that would lose a value.
func (t tomlFormat) replaceInlineEnv(src []byte, item tomlItem, name string, e Entry) ([]byte, error) {
	tree, err := parseTOML(src)
	if err != nil {
		return nil, err
	}
	if losesVariable(t.entryTable(tree, name), e) {
		return nil, errTOMLForm
	}
	return applyEdits(src, edit{item.value, item.end, inlineTOML(e.Env)}), nil
}

// entryTable returns the table of an entry, or nil.
func (t tomlFormat) entryTable(tree map[string]any, name string) map[string]any {
	servers, _ := tree[t.key].(map[string]any)
	table, _ := servers[name].(map[string]any)
	return table
}

// losesVariable reports whether the table of an entry has a variable that is not a string and
// that e does not replace.
func losesVariable(table map[string]any, e Entry) bool {
	env, _ := table["env"].(map[string]any)
	for k, v := range env {
		_, isText := v.(string)
		if _, replaced := e.Env[k]; !isText && !replaced {
			return true
		}
	}
	return false
}

func hasHeader(items []tomlItem, path []string) bool {
	return slices.ContainsFunc(items, func(i tomlItem) bool { return i.header && slices.Equal(i.path, path) })
}

// lineEnd returns the end of the line of pos, before its line break.
func lineEnd(src []byte, pos int) int {
	i := bytes.IndexByte(src[pos:], '\n')
	if i < 0 {
		return len(src)
	}
	if i > 0 && src[pos+i-1] == '\r' {
		i--
	}
	return pos + i
}

func (t tomlFormat) removeEntry(src []byte, name string, hint []byte) ([]byte, error) {
	before, err := parseTOML(src)
	if err != nil {
		return nil, err
	}
	items, err := scanTOML(src)
	if err != nil {
		return nil, err
	}
	entry := []string{t.key, name}
	var edits []edit
	tail := false
	for i := 0; i < len(items); i++ {
		if !items[i].isUnder(entry) {
			continue
		}
		first := i
		for i+1 < len(items) && items[i+1].isUnder(entry) {
			i++
		}
		start, end := items[first].start, lineEnd(src, items[i].end)
		end += len(newlineAt(src, end))
		if nl := newlineOf(src); items[first].header && bytes.HasSuffix(src[:start], []byte(nl+nl)) {
			start -= len(nl)
		}
		tail = i == len(items)-1 && len(bytes.TrimSpace(src[end:])) == 0
		edits = append(edits, edit{start, end, ""})
	}
	after := applyEdits(src, edits...)
	if tail && hint != nil {
		body, was := bytes.TrimRight(after, "\r\n"), bytes.TrimRight(hint, "\r\n")
		after = append(bytes.Clone(body), hint[len(was):]...)
	}
	return after, t.checkEdit(before, after, name)
}

// newlineAt returns the line break at pos, or nil.
func newlineAt(src []byte, pos int) []byte {
	for _, nl := range []string{"\r\n", "\n"} {
		if bytes.HasPrefix(src[pos:], []byte(nl)) {
			return []byte(nl)
		}
	}
	return nil
}

func (t tomlFormat) restoreEntry(src []byte, name string, from []byte) ([]byte, error) {
	e, found, err := t.lookupEntry(from, name)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, errNothingToRestore
	}
	return t.putEntry(src, name, e)
}

func (t tomlFormat) entrySnippet(name string, e Entry) string {
	return "[" + t.key + "." + name + "]\n" + strings.Join(entryLines(e), "\n")
}

func (t tomlFormat) fileNotes([]byte, string) []string { return nil }

func inlineEntry(e Entry) string { return "{ " + strings.Join(entryLines(e), ", ") + " }" }

// entryLines returns the keys and values of an entry.
func entryLines(e Entry) []string {
	var lines []string
	if e.URL != "" {
		lines = append(lines, "url = "+quoteTOML(e.URL))
		if e.Authorization != "" {
			lines = append(lines, "bearer_token_env_var = "+quoteTOML(e.Authorization))
		}
	} else {
		lines = append(lines, "command = "+quoteTOML(e.Command), "args = "+listTOML(e.Args))
	}
	if len(e.Env) > 0 {
		lines = append(lines, "env = "+inlineTOML(e.Env))
	}
	return lines
}

func inlineTOML(env map[string]string) string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(env)) {
		parts = append(parts, bareOrQuoted(k)+" = "+quoteTOML(env[k]))
	}
	return "{ " + strings.Join(parts, ", ") + " }"
}

func listTOML(list []string) string {
	parts := make([]string, len(list))
	for i, s := range list {
		parts[i] = quoteTOML(s)
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

func bareOrQuoted(key string) string {
	for _, r := range key {
		if r != '-' && r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') {
			return quoteTOML(key)
		}
	}
	if key == "" {
		return `""`
	}
	return key
}

// quoteTOML returns a TOML string. If possible, a text with backslashes becomes a literal
// string, so that Windows paths stay readable.
func quoteTOML(s string) string {
	plain := !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f || r == '\'' || r == 0xfffd })
	if plain && strings.Contains(s, `\`) {
		return "'" + s + "'"
	}
	var out strings.Builder
	out.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			out.WriteString(`\` + string(r))
		case r < ' ' || r == 0x7f:
			out.WriteString(`\u` + fmt.Sprintf("%04X", r))
		default:
			out.WriteString(string(r))
		}
	}
	return out.String() + `"`
}
