package install

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// format is the configuration of a client: its language, the member with the servers and the
// form of an entry. Its methods are pure.
type format struct {
	Language language
	// Key is the member of the root that contains the servers: a list in YAML, and else an
	// object.
	Key   string
	Shape shape
	// Strict reports whether the client may not accept comments and trailing commas.
	Strict bool
}

type language string

const (
	languageJSON language = "" // JSON with comments and trailing commas
	languageTOML language = "toml"
	languageYAML language = "yaml"
)

// document is a parsed configuration, which is edited as text.
type document interface {
	// values returns the configuration as values.
	values() map[string]any
	// checkEntry returns an error if an entry cannot be found, because it occurs twice or the
	// servers are another value.
	checkEntry(name string) error
	// setValue returns the text with a value at a path below an entry, or with the entry if the
	// path is empty. It adds missing objects. If the text could have several forms, it returns
	// all of them, of which the first valid one is right.
	setValue(name string, path []string, val any) ([][]byte, error)
	// removeEntry returns the text without an entry, or its possible forms. was is the document
	// before the entry was added, or nil: an object that is now empty and did not exist then is
	// also removed.
	removeEntry(name string, was document) ([][]byte, error)
	// entryRange returns the place of an entry in the text. ok is false if the entry is not
	// in a single place.
	entryRange(name string) (start, end int, ok bool)
}

var (
	// errForm is returned if an edit could change more than the entry.
	errForm = errors.New("the servers are written in a form that cannot be edited safely")
	// errNothingToRestore is the error for a backup without the entry to restore.
	errNothingToRestore = errors.New("the backup has no entry to restore")
)

// syntaxAt returns an error at a position of a text.
func syntaxAt(src []byte, offset int, message string, args ...any) error {
	line, column := lineAndColumn(src, offset)
	return &syntaxError{line, column, fmt.Sprintf(message, args...)}
}

// parse parses a configuration. Its error is a *syntaxError.
func (f format) parse(src []byte) (document, error) {
	switch f.Language {
	case languageTOML:
		return readTOML(src, f.Key)
	case languageYAML:
		return readYAML(src, f.Key)
	default:
		d, err := readJSON(src)
		if err == nil {
			d.key = f.Key
		}
		return d, err
	}
}

// findEntry parses a configuration and finds an entry.
func (f format) findEntry(src []byte, name string) (d document, entry map[string]any, found bool, err error) {
	if d, err = f.parse(src); err == nil {
		err = d.checkEntry(name)
	}
	if err != nil {
		return nil, nil, false, err
	}
	value, found := serversOf(d.values()[f.Key])[name]
	entry, _ = value.(map[string]any)
	return d, entry, found, nil
}

// serversOf returns servers by their names: the members of an object, or the objects with a
// name in a list.
func serversOf(value any) map[string]any {
	if list, ok := value.([]any); ok {
		servers := map[string]any{}
		for _, each := range list {
			if entry, ok := each.(map[string]any); ok && asText(entry["name"]) != "" {
				servers[asText(entry["name"])] = entry
			}
		}
		return servers
	}
	servers, _ := value.(map[string]any)
	return servers
}

// lookupEntry finds an entry. It returns an error if the file does not parse.
func (f format) lookupEntry(src []byte, name string) (Entry, bool, error) {
	_, entry, found, err := f.findEntry(src, name)
	return f.Shape.readEntry(entry), found, err
}

// putEntry inserts or updates an entry. It changes only the values that differ if the entry
// has the same kind of connection.
func (f format) putEntry(src []byte, name string, e Entry) ([]byte, error) {
	d, entry, found, err := f.findEntry(src, name)
	if err != nil {
		return nil, err
	}
	changes := []change{{nil, f.Shape.entryFields(e)}}
	if old := f.Shape.readEntry(entry); found && f.Shape.isPatchable(entry, old, e) {
		changes = f.Shape.changedValues(entry, old, e)
	}
	for _, c := range changes {
		texts, err := d.setValue(name, c.path, c.val)
		if err != nil {
			return nil, err
		}
		if src, d, err = f.firstValid(d, name, texts); err != nil {
			return nil, err
		}
	}
	return src, nil
}

// removeEntry removes an entry. hint is the content before the entry was added, or nil: an
// object that is now empty and did not exist then is also removed.
func (f format) removeEntry(src []byte, name string, hint []byte) ([]byte, error) {
	d, _, found, err := f.findEntry(src, name)
	if err != nil || !found {
		return src, err
	}
	var was document
	if hint != nil {
		if was, err = f.parse(hint); err != nil {
			was = nil
		}
	}
	texts, err := d.removeEntry(name, was)
	if err != nil {
		return nil, err
	}
	if f.Language != languageJSON && hint != nil {
		for i, text := range texts {
			if bytes.HasPrefix(src, bytes.TrimRight(text, "\r\n")) { // the entry was at the end
				texts[i] = slices.Concat(bytes.TrimRight(text, "\r\n"), hint[len(bytes.TrimRight(hint, "\r\n")):])
			}
		}
	}
	text, _, err := f.firstValid(d, name, texts)
	return text, err
}

// restoreEntry sets the entry to the value that it has in from.
func (f format) restoreEntry(src []byte, name string, from []byte) ([]byte, error) {
	b, entry, found, err := f.findEntry(from, name)
	if err != nil {
		return nil, err
	}
	d, _, still, err := f.findEntry(src, name)
	if err != nil {
		return nil, err
	}
	if !found || !still {
		return nil, errNothingToRestore
	}
	old := f.Shape.readEntry(entry)
	start, end, ok := d.entryRange(name)
	if first, last, known := b.entryRange(name); ok && known {
		text, _, err := f.firstValid(d, name, [][]byte{applyEdits(src, edit{start, end, string(from[first:last])})})
		if got, _, lookupErr := f.lookupEntry(text, name); err == nil && lookupErr == nil && sameEntry(got, old) {
			return text, nil
		}
	}
	return f.putEntry(src, name, old)
}

// firstValid returns the first text that differs from a document in an entry only.
func (f format) firstValid(d document, name string, texts [][]byte) ([]byte, document, error) {
	before := d.values()
	if len(before) == 0 && f.Language == languageYAML {
		for _, each := range newConfiguration() {
			before[each.key] = each.val
		}
	}
	for _, text := range texts {
		after, err := f.parse(text)
		if err == nil && sameValue(f.withoutEntry(before, name), f.withoutEntry(after.values(), name)) {
			return text, after, nil
		}
	}
	return nil, nil, errForm
}

// withoutEntry returns a configuration without an entry, and without the servers if there are
// no others.
func (f format) withoutEntry(values map[string]any, name string) map[string]any {
	values = maps.Clone(values)
	left := 0
	switch servers := values[f.Key].(type) {
	case nil:
	case map[string]any:
		servers = maps.Clone(servers)
		delete(servers, name)
		values[f.Key], left = servers, len(servers)
	case []any:
		servers = slices.DeleteFunc(slices.Clone(servers), func(item any) bool {
			members, _ := item.(map[string]any)
			return members["name"] == name
		})
		values[f.Key], left = servers, len(servers)
	default:
		left = 1
	}
	if left == 0 {
		delete(values, f.Key)
	}
	return values
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

// entrySnippet returns the text to paste by hand.
func (f format) entrySnippet(name string, e Entry) string {
	fields := f.Shape.entryFields(e)
	switch f.Language {
	case languageTOML:
		return renderSection(f.Key, name, fields)
	case languageYAML:
		return renderList(f.Key, name, fields)
	default:
		return renderSnippet([]field{{f.Key, []field{{name, fields}}}})
	}
}

// fileNotes returns the reasons why the client may not be able to read src.
func (f format) fileNotes(src []byte, title string) []string {
	if !f.Strict {
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
