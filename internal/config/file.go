package config

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/safeopen"
	"github.com/guideway-dev/guideway/internal/platform/spelling"
)

const (
	fileName     = "guideway.json"
	maxFileBytes = 1 << 20
)

// readFile applies the configuration file. If the user named none and guideway.json does
// not exist, it applies that of the data directory, if any.
func (l *loader) readFile() {
	path, named := l.filePath()
	if path == "" {
		return
	}
	data, err := readRegular(path, named)
	if errors.Is(err, fs.ErrNotExist) && !named {
		l.readDataFile()
		return
	}
	l.config.File = path
	if err != nil {
		fix := fmt.Sprintf("make the path a readable file of at most %d bytes, or name another file with --config or %s", maxFileBytes, EnvConfig)
		if errors.Is(err, fs.ErrNotExist) {
			fix = "create the file, or name another file with --config or " + EnvConfig
		}
		l.addError(guideway.Diagnostic{
			Code: "config-unreadable", File: path, Fix: fix,
			Message: "the configuration file cannot be read: " + safeopen.Cause(err).Error(),
		})
		return
	}
	l.applyFile(path, data)
}

// dataFileName is the configuration file of a data directory. It is read if there is no
// other configuration file.
const dataFileName = "config.json"

// readDataFile applies the configuration file of the data directory. It ignores a JSON
// object without a Guideway setting: any directory may be a data directory, and may have an
// unrelated file of that name.
func (l *loader) readDataFile() {
	dir := l.statedDataDir()
	if dir == "" {
		return
	}
	path := joinPath(l.goos, dir, dataFileName)
	data, err := readRegular(path, false)
	if err != nil {
		return
	}
	var document map[string]any
	if json.Unmarshal(data, &document) == nil {
		ours := func(key string) bool {
			return key == "mcpServers" || slices.Contains(namedObjects(), key) || l.isGroup(key) || l.findSetting(key) != nil
		}
		if !slices.ContainsFunc(slices.Collect(maps.Keys(document)), ours) {
			l.addWarning(guideway.Diagnostic{
				Code: "config-not-ours", File: path,
				Message: "the file has no Guideway setting and is ignored",
				Fix:     "use --config to read the file anyway; guideway help settings lists the settings",
			})
			return
		}
	}
	l.config.File = path
	l.applyFile(path, data)
}

// statedDataDir returns the data directory of a flag or variable, or the default.
func (l *loader) statedDataDir() string {
	i := slices.IndexFunc(l.table, func(s Setting) bool { return s.Name == "dataDir" })
	s := &l.table[i]
	texts := slices.Clone(l.opts.Flags[s.Name])
	slices.Reverse(texts) // the last one takes precedence
	texts = append(texts, l.opts.Getenv(s.Env))
	for _, alias := range s.Aliases {
		texts = append(texts, l.opts.Getenv(alias))
	}
	if text := cmp.Or(texts...); text != "" {
		dir, f := l.resolvePath(text, l.dir)
		if f != nil {
			return "" // The error is reported when the setting is read.
		}
		return dir
	}
	return l.config.Dirs.Data
}

// filePath returns the file to read. named reports whether the user named it.
func (l *loader) filePath() (path string, named bool) {
	name := cmp.Or(l.opts.File, l.opts.Getenv(EnvConfig))
	if name == "" {
		return joinPath(l.goos, l.config.Dirs.Config, fileName), false
	}
	path, f := l.resolvePath(name, l.dir)
	if f != nil {
		l.reportError(guideway.Diagnostic{File: EnvConfig}, f)
		return "", true
	}
	return path, true
}

// readRegular reads a file of bounded size. Only a file that the user named may be a
// special file, such as a pipe.
func readRegular(path string, named bool) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	switch {
	case info.IsDir():
		return nil, errors.New("the path is a directory")
	case !info.Mode().IsRegular() && !named:
		return nil, errors.New("the path is not a regular file")
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxFileBytes+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxFileBytes {
		return nil, fmt.Errorf("the file is larger than %d bytes", maxFileBytes)
	}
	return data, nil
}

// applyFile checks and applies the text of a configuration file.
func (l *loader) applyFile(path string, data []byte) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	f := &fileReader{loader: l, path: path, data: data, dec: json.NewDecoder(bytes.NewReader(data))}
	var document any
	if err := json.Unmarshal(data, &document); err != nil {
		f.addSyntaxError(err)
		return
	}
	if _, ok := document.(map[string]any); !ok {
		l.reportError(f.diagnosticAt("config-type", 0, ""), newError("write an object, such as {}", "the file contains %s", kindOf(document)))
		return
	}
	f.readObject("")
}

// fileReader reads a configuration file.
type fileReader struct {
	*loader
	path string
	data []byte
	dec  *json.Decoder
}

func (f *fileReader) addSyntaxError(err error) {
	offset := len(f.data)
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		// The offset counts the bytes read, including the invalid one.
		offset = max(int(syntax.Offset)-1, 0)
	}
	message := "the file is not valid JSON: " + err.Error()
	fix := "fix the JSON; comments and trailing commas are not allowed"
	if len(bytes.TrimSpace(f.data)) == 0 {
		message, fix = "the file is empty", "write {}, or delete the file"
	}
	f.reportError(f.diagnosticAt("config-syntax", offset, ""), &settingError{message: message, fix: fix})
}

// diagnosticAt returns a diagnostic with the position of an offset.
func (f *fileReader) diagnosticAt(code string, offset int, pointer string) guideway.Diagnostic {
	before := f.data[:min(offset, len(f.data))]
	line := 1 + bytes.Count(before, []byte("\n"))
	column := 1 + len(before) - (bytes.LastIndexByte(before, '\n') + 1)
	return guideway.Diagnostic{Code: code, File: f.path, Line: line, Column: column, Pointer: pointer}
}

// nextOffset returns the offset of the next token.
func (f *fileReader) nextOffset() int {
	offset := int(f.dec.InputOffset())
	rest := bytes.TrimLeft(f.data[offset:], " \t\r\n:,")
	return len(f.data) - len(rest)
}

// readObject reads an object. prefix is "" or the name of a group and a dot. The document
// is valid JSON, so Token returns no error.
func (f *fileReader) readObject(prefix string) {
	f.nextToken()
	seen := map[string]int{}
	for f.dec.More() {
		keyAt := f.nextOffset()
		key, _ := f.nextToken().(string)
		name := prefix + key
		pointer := "/" + strings.ReplaceAll(prefix, ".", "/") + escapePointer(key)
		valueAt := f.nextOffset()
		if first, twice := seen[key]; twice {
			f.reportError(f.diagnosticAt("config-duplicate", keyAt, pointer),
				newError("remove one of the two entries", "%q is set twice, first in line %d", name, f.diagnosticAt("", first, "").Line))
			f.skipValue()
			continue
		}
		seen[key] = keyAt
		f.readMember(prefix, key, pointer, keyAt, valueAt)
	}
	f.nextToken()
}

func escapePointer(key string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
}

// namedObjects returns the keys of objects whose members have names of the user's choice.
func namedObjects() []string { return []string{"upstreams", "models", "notices", "sources"} }

// readMember reads the value of one key.
func (f *fileReader) readMember(prefix, key, pointer string, keyAt, valueAt int) {
	name := prefix + key
	switch name {
	case "$schema":
		f.skipValue()
		return
	case "upstreams":
		f.readUpstreams(valueAt)
		return
	case "models":
		f.readModels(valueAt)
		return
	case "notices":
		f.readNotices(valueAt)
		return
	case "sources":
		f.readSources(valueAt)
		return
	case "gateway.tools":
		f.readTools(valueAt)
		return
	}
	if prefix == "" && f.isGroup(key) {
		if f.data[valueAt] != '{' {
			decoded := f.skipValue()
			wrong := f.groupSwitch(key, decoded)
			if wrong == nil {
				wrong = newError("write an object", "%q is %s", name, kindOf(decoded))
			}
			f.reportError(f.diagnosticAt("config-type", valueAt, pointer), wrong)
			return
		}
		f.readObject(key + ".")
		return
	}
	for i := range f.table {
		if s := &f.table[i]; s.Name == name && !strings.Contains(key, ".") {
			place := f.diagnosticAt("", valueAt, pointer)
			decoded := f.skipValue()
			v, fault := s.decodeJSON(decoded)
			if fault != nil {
				place.Code = "config-type"
				f.reportError(place, fault)
				return
			}
			origin := Origin{Kind: OriginFile, Name: fmt.Sprintf("%s:%d", f.path, f.diagnosticAt("", keyAt, "").Line)}
			f.applyValue(s, v, filepath.Dir(f.path), place, origin)
			return
		}
	}
	decoded := f.skipValue()
	f.reportError(f.diagnosticAt("config-unknown-key", keyAt, pointer), f.unknownKey(prefix, key, decoded))
}

func (l *loader) isGroup(key string) bool {
	for i := range l.table {
		if strings.HasPrefix(l.table[i].Name, key+".") {
			return true
		}
	}
	return false
}

// unknownKey returns an error for an unknown key. The fix is the key that was probably
// meant, or lists the allowed keys.
func (f *fileReader) unknownKey(prefix, key string, decoded any) *settingError {
	if prefix == "" && key == "mcpServers" {
		return f.explainClientFile(decoded)
	}
	if wrong := f.explainName(key, decoded); wrong != nil {
		return wrong
	}
	var here, elsewhere []string
	for i := range f.table {
		name := f.table[i].Name
		group, last, nested := strings.Cut(name, ".")
		if rest, inside := strings.CutPrefix(name, prefix); inside {
			rest, _, _ = strings.Cut(rest, ".")
			here = append(here, rest)
		}
		if !nested {
			group, last = "", name
		}
		if group+"." != prefix && strings.EqualFold(last, key) {
			elsewhere = append(elsewhere, name)
		}
	}
	if prefix == "" {
		here = append(here, namedObjects()...)
	}
	message := fmt.Sprintf("%q is not a setting", prefix+key)
	switch near := spelling.Closest(key, here); {
	case near != "":
		return &settingError{message: message, fix: fmt.Sprintf("did you mean %q?", prefix+near)}
	case len(elsewhere) > 0:
		return &settingError{message: message, fix: fmt.Sprintf("did you mean %q?", elsewhere[0])}
	default:
		return &settingError{message: message, fix: "use one of: " + strings.Join(slices.Compact(here), ", ")}
	}
}

func (f *fileReader) nextToken() json.Token {
	token, _ := f.dec.Token()
	return token
}

// skipValue reads the next value completely and returns it.
func (f *fileReader) skipValue() any {
	var v any
	_ = f.dec.Decode(&v)
	return v
}

// decodeJSON converts a JSON value into a value of the setting.
func (s *Setting) decodeJSON(decoded any) (value, *settingError) {
	switch s.Kind {
	case KindBool:
		if flag, ok := decoded.(bool); ok {
			return value{flag: flag}, nil
		}
		return value{}, newError("write true or false", "%q is %s", s.Name, kindOf(decoded))
	case KindList, KindPaths:
		items, ok := decoded.([]any)
		if !ok {
			return value{}, newError(`write a list of strings, such as ["…"]`, "%q is %s", s.Name, kindOf(decoded))
		}
		list := make([]string, len(items))
		for i, item := range items {
			if list[i], ok = item.(string); !ok {
				return value{}, newError("write strings only", "%q contains %s as element %d", s.Name, kindOf(item), i+1)
			}
		}
		return value{list: list}, nil
	case KindCount, KindPercent:
		if number, ok := decoded.(float64); ok && number == math.Trunc(number) {
			return value{text: numberText(number)}, nil
		}
		return value{}, newError("write a whole number, such as 100", "%q is %s", s.Name, kindOf(decoded))
	case KindSize:
		switch v := decoded.(type) {
		case string:
			return value{text: v}, nil
		case float64:
			if v == math.Trunc(v) {
				return value{text: numberText(v)}, nil
			}
		}
		return value{}, newError(`write a size, such as "10MB", or a number of bytes`, "%q is %s", s.Name, kindOf(decoded))
	default:
		if text, ok := decoded.(string); ok {
			return value{text: text}, nil
		}
		return value{}, newError("write a string", "%q is %s", s.Name, kindOf(decoded))
	}
}

// numberText returns a whole number of JSON as digits.
func numberText(number float64) string { return strconv.FormatFloat(number, 'f', -1, 64) }

func kindOf(decoded any) string {
	switch v := decoded.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case float64:
		if v != math.Trunc(v) {
			return "a fraction"
		}
		return "a number"
	case string:
		return "a string"
	case []any:
		return "a list"
	default:
		return "an object"
	}
}
