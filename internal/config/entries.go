package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/guideway-dev/guideway/internal/platform/spelling"
)

// namedEntries describes an object of the file whose members have names of the user's
// choice.
type namedEntries struct {
	// one is the noun for a member in messages and in diagnostic codes; one + "s" is the
	// key of the object.
	one string
	// fix is the suggestion if the value is not an object.
	fix string
	// read parses one member. offset is the position of the error in its text, if it is
	// known.
	read func(name string, text []byte, origin Origin) (offset int, invalid *settingError)
}

// readEntries reads the object at an offset. It reports invalid members and skips them.
func (f *fileReader) readEntries(at int, e namedEntries) {
	group := e.one + "s"
	if f.data[at] != '{' {
		f.reportError(f.diagnosticAt("config-type", at, "/"+group), newError(e.fix, "%q is %s", group, kindOf(f.skipValue())))
		return
	}
	f.nextToken()
	seen := map[string]bool{}
	for f.dec.More() {
		keyAt := f.nextOffset()
		name, _ := f.nextToken().(string)
		valueAt := f.nextOffset()
		var text json.RawMessage
		_ = f.dec.Decode(&text)
		pointer := "/" + group + "/" + escapePointer(name)
		if seen[name] {
			f.reportError(f.diagnosticAt("config-duplicate", keyAt, pointer), newError("remove one of the two entries", "the %s %q is set twice", e.one, name))
			continue
		}
		seen[name] = true
		origin := Origin{Kind: OriginFile, Name: fmt.Sprintf("%s:%d", f.path, f.diagnosticAt("", keyAt, "").Line)}
		if offset, invalid := e.read(name, text, origin); invalid != nil {
			f.reportError(f.diagnosticAt("config-"+e.one, valueAt+offset, pointer), invalid)
		}
	}
	f.nextToken()
}

// decodeEntry decodes one member into a struct. If that fails, it returns the error and its
// offset in text. of is the description of the member in messages, such as `the source
// "team"`.
func decodeEntry(text []byte, into any, of string) (offset int, invalid *settingError) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	err := dec.Decode(into)
	var kind *json.UnmarshalTypeError
	switch {
	case err == nil && string(bytes.TrimSpace(text)) == "null":
		return 0, newError("write an object", "%s is null", of)
	case err == nil:
		return 0, nil
	case errors.As(err, &kind) && kind.Field == "":
		return 0, newError("write an object", "%s is %s", of, jsonKind(kind.Value))
	case errors.As(err, &kind):
		field := strings.TrimPrefix(kind.Field, "UpstreamServer.") // The file does not show that this struct is embedded.
		return max(0, int(kind.Offset)-1), newError("write "+withArticle(kind.Type.String()), "%q of %s is %s", field, of, jsonKind(kind.Value))
	}
	field, ok := strings.CutPrefix(err.Error(), "json: unknown field ")
	if !ok {
		return 0, newError("correct the value", "%s: %v", of, err)
	}
	name, _ := strconv.Unquote(field)
	_, all := fieldsOf(reflect.TypeOf(into))
	fix := "use one of: " + strings.Join(siblingsOf(reflect.TypeOf(into), text, name), ", ")
	if near := spelling.Closest(name, all); near != "" {
		fix = fmt.Sprintf("did you mean %q?", near)
	}
	return max(0, bytes.Index(text, []byte(field))), &settingError{message: fmt.Sprintf("%s of %s is not a setting", field, of), fix: fix}
}

// siblingsOf returns the JSON names of the fields of the struct in text that has an unknown
// member: the struct of type t, or one nested in it.
func siblingsOf(t reflect.Type, text []byte, unknown string) []string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(text, &members) != nil || t.Kind() != reflect.Struct {
		return nil
	}
	own, _ := fieldsOf(t)
	if _, has := members[unknown]; has && !slices.Contains(own, unknown) {
		return own
	}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if found := siblingsOf(f.Type, members[name], unknown); found != nil {
			return found
		}
	}
	return nil
}

// fieldsOf returns the JSON names of a struct's fields (own), and the same list with the
// names of nested fields (all).
func fieldsOf(t reflect.Type) (own, all []string) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil, nil
	}
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		fields, within := fieldsOf(t.Field(i).Type)
		switch {
		case t.Field(i).Anonymous:
			own, all = append(own, fields...), append(all, within...)
		case name != "-":
			own, all = append(own, name), append(append(all, name), within...)
		}
	}
	return own, all
}

// durationError returns the error of a value that is not a duration of type t. The decoder
// adds the name of the field.
func durationError(value []byte, t reflect.Type) error {
	return &json.UnmarshalTypeError{Value: "value " + string(value), Type: t}
}

// jsonKind returns the kind of a JSON value for messages. kind is the Value of a
// json.UnmarshalTypeError.
func jsonKind(kind string) string {
	switch {
	case kind == "array":
		return "a list"
	case kind == "object":
		return "an object"
	case kind == "bool":
		return "a boolean"
	case strings.HasPrefix(kind, "number "):
		return "the " + kind
	case strings.HasPrefix(kind, "value "):
		return strings.TrimPrefix(kind, "value ")
	}
	return "a " + kind
}

// withArticle returns the noun for a field's type with its article.
func withArticle(kind string) string {
	switch {
	case strings.HasPrefix(kind, "[]"):
		return "a list of strings"
	case kind == "config.UpstreamTime":
		return `a duration above 0s, such as "90s"`
	case kind == "config.SourceTime":
		return fmt.Sprintf(`a duration from 0s to %s, such as "5m"`, DurationText(maxSyncInterval))
	case strings.HasPrefix(kind, "map"), strings.Contains(kind, "."):
		return "an object"
	case strings.HasPrefix(kind, "int"):
		return "a whole number"
	case strings.HasPrefix(kind, "float"):
		return "a number"
	case kind == "bool":
		return "true or false"
	}
	return "a string"
}
