package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/guideway-dev/guideway/internal/platform/spelling"
)

// readEntries reads the object at an offset: the entries of a kind by their names. It reports
// invalid entries and skips them. fix is the suggestion if the value is not an object. add
// checks an entry and adds it to the configuration; it returns an error for an invalid entry,
// which it does not add. of describes the entry in errors.
func readEntries[T any](f *fileReader, at int, kind, noun, fix string, add func(name, of string, origin Origin, entry *T) *settingError) {
	group := kind + "s"
	if f.data[at] != '{' {
		f.reportError(f.diagnosticAt("config-type", at, "/"+group), newError(fix, "%q is %s", group, kindOf(f.skipValue())))
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
			f.reportError(f.diagnosticAt("config-duplicate", keyAt, pointer), newError("remove one of the two entries", "the %s %q is set twice", kind, name))
			continue
		}
		seen[name] = true
		origin := Origin{Kind: OriginFile, Name: fmt.Sprintf("%s:%d", f.path, f.diagnosticAt("", keyAt, "").Line)}
		var entry T
		of := fmt.Sprintf("the %s %q", noun, name)
		offset, invalid := decodeEntry(text, &entry, of)
		if invalid == nil {
			invalid = add(name, of, origin, &entry)
		}
		if invalid != nil {
			f.reportError(f.diagnosticAt("config-"+kind, valueAt+offset, pointer), invalid)
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
	if _, model := into.(*Model); model && slices.Contains([]string{"key", "apikey"}, strings.ToLower(name)) {
		fix = "keys are read from the environment; name the variable in keyEnv"
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

// Model is a language model for the agents of machines.
type Model struct {
	// Provider is one of Providers.
	Provider string `json:"provider"`
	// Model is the name that the server uses. For ProviderScripted it is a file.
	Model string `json:"model"`
	// BaseURL selects another server with the same protocol.
	BaseURL string `json:"baseUrl,omitempty"`
	// KeyEnv is the variable that contains the key. "" means the provider's usual variable.
	KeyEnv string `json:"keyEnv,omitempty"`
	// MaxTokens is the maximum length of an answer in tokens. 0 is the adapter's default.
	MaxTokens int `json:"maxTokens,omitempty"`
	// OldMaxTokens sends MaxTokens as max_tokens, for servers that support no other name.
	OldMaxTokens bool `json:"oldMaxTokens,omitempty"`
	// Timeout is the time limit of a request. 0 is five minutes.
	Timeout UpstreamTime `json:"timeout,omitempty"`
	Price   ModelPrice   `json:"price"`
}

// Machines are the limits of machine runs in one process.
type Machines struct {
	// Workers is the maximum number of runs that the process drives at a time. 0 means none:
	// other processes with the same store drive them.
	Workers int
	// Requests is the maximum number of concurrent requests to the models of one provider.
	Requests int
}

// ModelPrice is the price of a million tokens, in any currency.
type ModelPrice struct {
	Input float64 `json:"input,omitempty"`
	// Cached is the price of input tokens that the server had cached. 0 means that they
	// have the price Input.
	Cached float64 `json:"cached,omitempty"`
	Output float64 `json:"output,omitempty"`
}

// The providers.
const (
	ProviderOpenAI    = "openai"
	ProviderAnthropic = "anthropic"
	ProviderScripted  = "scripted"
)

// Providers returns the supported protocols of model servers, and the scripted provider.
func Providers() []string { return []string{ProviderOpenAI, ProviderAnthropic, ProviderScripted} }

// readModels reads the models of the file, by the levels of roles or other names.
func (f *fileReader) readModels(at int) {
	readEntries(f, at, "model", "model", "write an object of models by their levels or names", func(name, of string, _ Origin, m *Model) *settingError {
		if invalid := m.validate(of); invalid != nil {
			return invalid
		}
		if f.config.Models == nil {
			f.config.Models = map[string]Model{}
		}
		f.config.Models[name] = *m
		return nil
	})
}

// validate checks a model without asking its server. of is the description of the model in
// messages.
func (m *Model) validate(of string) *settingError {
	switch {
	case m.Provider == "":
		return newError(`add "provider", one of: `+strings.Join(Providers(), ", "), "%s has no provider", of)
	case !slices.Contains(Providers(), m.Provider):
		return newError("use one of: "+strings.Join(Providers(), ", "), "%s has the unknown provider %q", of, m.Provider)
	case m.Model == "":
		return newError(`add "model": the name that the server uses, or the file of a scripted model`, "%s has no model name", of)
	case m.MaxTokens < 0:
		return newError("write a number of at least 0", "%s has the negative maxTokens %d", of, m.MaxTokens)
	case m.Price.Input < 0 || m.Price.Cached < 0 || m.Price.Output < 0:
		return newError("write a number of at least 0", "%s has a negative price: input %g, cached %g, output %g", of, m.Price.Input, m.Price.Cached, m.Price.Output)
	}
	return nil
}

// Receiver is a webhook or a command that receives notices.
type Receiver struct {
	// URL is the address of a webhook, Secret the key of its signature. Both may refer to a
	// secret, as "${env:NAME}" or "${keychain:NAME}".
	URL    string `json:"url,omitempty"`
	Secret string `json:"secret,omitempty"`
	// Format is one of NoticeFormats. Empty means json.
	Format string `json:"format,omitempty"`
	// Command is a command with its arguments, which receives the notice on its standard
	// input.
	Command []string `json:"command,omitempty"`
	// Types are some of NoticeTypes. Nil means DefaultNoticeTypes.
	Types []string `json:"types,omitempty"`
	// Timeout is the time limit of one delivery. 0 means ten seconds.
	Timeout  UpstreamTime `json:"timeout,omitempty"`
	Disabled bool         `json:"disabled,omitempty"`
}

// The formats of webhooks: the whole notice, or {"text": …} as chat systems expect it.
const (
	NoticeFormatJSON = "json"
	NoticeFormatText = "text"
)

// NoticeFormats returns the formats of webhooks.
func NoticeFormats() []string { return []string{NoticeFormatJSON, NoticeFormatText} }

// NoticeTypes returns the types of notices that a receiver can select.
func NoticeTypes() []string {
	return append(DefaultNoticeTypes(), "run-completed", "run-aborted", "machine-completed", "machine-cancelled")
}

// DefaultNoticeTypes returns the types of notices that ask a person for something.
func DefaultNoticeTypes() []string {
	return []string{"gate", "call-held", "machine-waiting", "machine-paused"}
}

// receiverName is the pattern of names of receivers. The names are also names of files.
var receiverName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,39}$`) })

// readNotices reads the receivers of notices by their names.
func (f *fileReader) readNotices(at int) {
	readEntries(f, at, "notice", "receiver", "write an object of receivers by their names", func(name, of string, _ Origin, r *Receiver) *settingError {
		if invalid := r.validate(name, of); invalid != nil {
			return invalid
		}
		if f.config.Notices == nil {
			f.config.Notices = map[string]Receiver{}
		}
		f.config.Notices[name] = *r
		return nil
	})
}

// validate checks a receiver without calling it. of is the description of the receiver in
// messages.
func (r *Receiver) validate(name, of string) *settingError {
	switch {
	case !receiverName().MatchString(name):
		return newError("use at most 40 lower-case letters, digits, - and _, with a letter or a digit first, such as \"team-chat\"", "%q is not a name of a receiver", name)
	case (r.URL == "") == (len(r.Command) == 0):
		return newError(`write either "url" or "command"`, `%s needs either "url" or "command"`, of)
	case r.URL == "" && (r.Secret != "" || r.Format != ""):
		return newError(`remove "secret" and "format"`, "%s is a command, which has neither a secret nor a format", of)
	case r.Command != nil && r.Command[0] == "":
		return newError(`write the program first, such as ["notify-send", "Guideway"]`, "the command of %s has no program", of)
	case r.Format != "" && !slices.Contains(NoticeFormats(), r.Format):
		return newError("use one of: "+strings.Join(NoticeFormats(), ", "), "%s has the unknown format %q", of, r.Format)
	case r.Types != nil && len(r.Types) == 0:
		return newError(`remove "types", or set "disabled": true`, `%s has an empty list "types", so it receives no notices`, of)
	}
	for _, t := range r.Types {
		if !slices.Contains(NoticeTypes(), t) {
			return newError("use some of: "+strings.Join(NoticeTypes(), ", "), "%s has the unknown type %q", of, t)
		}
	}
	if r.URL != "" && !strings.Contains(r.URL, "${") {
		if u, err := url.Parse(r.URL); err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
			return newError(`write "https://HOST/PATH"`, `"url" of %s is not an http or https URL`, of)
		}
	}
	return nil
}
