package config

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
)

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
	f.readEntries(at, namedEntries{
		one: "notice", fix: "write an object of receivers by their names",
		read: func(name string, text []byte, _ Origin) (int, *settingError) {
			var r Receiver
			of := fmt.Sprintf("the receiver %q", name)
			if offset, invalid := decodeEntry(text, &r, of); invalid != nil {
				return offset, invalid
			}
			if invalid := r.validate(name, of); invalid != nil {
				return 0, invalid
			}
			if f.config.Notices == nil {
				f.config.Notices = map[string]Receiver{}
			}
			f.config.Notices[name] = r
			return 0, nil
		},
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
