package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/guideway-dev/guideway/internal/platform/spelling"
)

// entries is an object of the file whose members have names of the user's choice.
type entries struct {
	// one is what a member is called in messages, and in the codes of findings; with an s
	// behind it, it is the key of the object.
	one string
	// fix says what to write where it is no object.
	fix string
	// read takes one member; offset is where in its text the problem is, as far as that is
	// known.
	read func(name string, text []byte, origin Origin) (offset int, problem *fault)
}

// entries reads the object that begins at an offset. A member that is wrong is told and
// left out; the others are read.
func (f *fileReader) entries(at int, e entries) {
	group := e.one + "s"
	if f.data[at] != '{' {
		f.fault(f.at("config-type", at, "/"+group), faultf(e.fix, "%q holds %s", group, kindOf(f.skip())))
		return
	}
	f.token()
	seen := map[string]bool{}
	for f.dec.More() {
		keyAt := f.next()
		name, _ := f.token().(string)
		valueAt := f.next()
		var text json.RawMessage
		_ = f.dec.Decode(&text)
		pointer := "/" + group + "/" + escapePointer(name)
		if seen[name] {
			f.fault(f.at("config-duplicate", keyAt, pointer), faultf("remove one of the two", "the %s %q is given twice", e.one, name))
			continue
		}
		seen[name] = true
		origin := Origin{Kind: OriginFile, Name: fmt.Sprintf("%s:%d", f.path, f.at("", keyAt, "").Line)}
		if offset, problem := e.read(name, text, origin); problem != nil {
			f.fault(f.at("config-"+e.one, valueAt+offset, pointer), problem)
		}
	}
	f.token()
}

// decodeEntry reads one member into a struct, and says of what is wrong where it is and
// what to write instead. of is what the member is, such as `the source "team"`.
func decodeEntry(text []byte, into any, of string) (offset int, problem *fault) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	err := dec.Decode(into)
	var kind *json.UnmarshalTypeError
	switch {
	case err == nil && string(bytes.TrimSpace(text)) == "null":
		return 0, faultf("write an object", "%s holds null", of)
	case err == nil:
		return 0, nil
	case errors.As(err, &kind) && kind.Field == "":
		return 0, faultf("write an object", "%s holds a %s", of, kind.Value)
	case errors.As(err, &kind):
		return max(0, int(kind.Offset)-1), faultf("write "+article(kind.Type.String()), "%q of %s holds a %s", kind.Field, of, kind.Value)
	}
	field, ok := strings.CutPrefix(err.Error(), "json: unknown field ")
	if !ok {
		return 0, faultf("mend it", "%s: %v", of, err)
	}
	name, _ := strconv.Unquote(field)
	own, all := fieldsOf(reflect.TypeOf(into))
	fix := "use one of: " + strings.Join(own, ", ")
	if near := spelling.Closest(name, all); near != "" {
		fix = fmt.Sprintf("did you mean %q?", near)
	}
	return max(0, bytes.Index(text, []byte(field))), &fault{message: fmt.Sprintf("%s of %s is not a setting", field, of), fix: fix}
}

// fieldsOf are the names that JSON has for the fields of a struct, and those together
// with the names within its fields.
func fieldsOf(t reflect.Type) (own, all []string) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil, nil
	}
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		own = append(own, name)
		_, within := fieldsOf(t.Field(i).Type)
		all = append(append(all, name), within...)
	}
	return own, all
}

// article names a type of a field with its article.
func article(kind string) string {
	switch {
	case strings.HasPrefix(kind, "[]"):
		return "a list of strings"
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
