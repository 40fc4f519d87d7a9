package install

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/guideway-dev/guideway"
)

// Server is an MCP server in the configuration of a client: a local one with a command, or
// a remote one with a URL.
type Server struct {
	Name    string
	Command string
	Args    []string
	Env     map[string]string
	Dir     string
	URL     string
	// SSE reports that the server uses the transport of 2024-11-05.
	SSE     bool
	Headers map[string]string
	// Bearer is the bearer token for the server.
	Bearer   string
	Disabled bool
	// Hidden are the disabled tools of the server.
	Hidden []string
	// Timeout is the time limit of a call. Zero means not set.
	Timeout time.Duration
	// Notes are warnings about settings that were not imported or that must be changed.
	Notes []string
}

// Servers lists the servers in a client's configuration by name. It omits Guideway's own
// entry.
func Servers(env Env, client Client, src []byte) ([]Server, error) {
	d, err := client.form.parse(src)
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeInvalid, "cannot read the configuration of %s: %w", client.Title, withPosition(err)).
			WithFix("fix the configuration file of %s", client.Title)
	}
	entries := serversOf(d.values()[client.form.key])
	if client.ID == "claude-code" && env.Dir != "" {
		// Claude Code stores the servers of a single directory in the same file. They take precedence.
		projects, _ := d.values()["projects"].(map[string]any)
		local, _ := projects[env.Dir].(map[string]any)
		all := maps.Clone(entries)
		maps.Copy(all, serversOf(local[client.form.key]))
		entries = all
	}
	var list []Server
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		entry, _ := convertOwnReferences(client.ID, entries[name]).(map[string]any) // an entry that is not an object has no command and no URL
		s := readServer(name, entry)
		if looksOurs(env, Entry{Command: s.Command, Args: s.Args}, "") || name == DefaultName && s.URL != "" {
			continue
		}
		list = append(list, s)
	}
	return list, nil
}

// readServer converts an entry in the form of any client.
func readServer(name string, entry map[string]any) Server {
	entry = unifyEntry(entry)
	s := Server{Name: name, Dir: asText(entry["cwd"]), Command: asText(entry["command"])}
	for _, key := range []string{"url", "serverUrl", "httpUrl"} {
		if s.URL == "" {
			s.URL = asText(entry[key])
		}
	}
	s.Args = textsOf(entry["args"])
	s.Env, s.Headers = asTexts(entry["env"]), asTexts(entry["headers"])
	for key, value := range asTexts(entry["http_headers"]) {
		s.setHeader(key, value)
	}
	for key, variable := range asTexts(entry["env_http_headers"]) {
		s.setHeader(key, "${env:"+variable+"}")
	}
	if variable := asText(entry["bearer_token_env_var"]); variable != "" {
		s.Bearer = "${env:" + variable + "}"
	}
	s.SSE = asText(entry["type"]) == "sse"
	enabled, given := entry["enabled"].(bool)
	disabled, _ := entry["disabled"].(bool)
	s.Disabled = disabled || given && !enabled
	for _, key := range []string{"disabledTools", "disabled_tools"} {
		s.Hidden = append(s.Hidden, textsOf(entry[key])...)
	}
	if seconds, err := strconv.ParseFloat(asText(entry["tool_timeout_sec"]), 64); err == nil && seconds > 0 && seconds < 1e6 {
		s.Timeout = time.Duration(seconds * float64(time.Second))
	}
	s.noteIgnored(entry)
	s.convertReferences()
	return s
}

// noteIgnored adds a note with the members of an entry that are not imported.
func (s *Server) noteIgnored(entry map[string]any) {
	known := []string{
		"cwd", "command", "url", "serverUrl", "httpUrl", "args", "env", "headers", "http_headers", "env_http_headers", "bearer_token_env_var",
		"type", "enabled", "disabled", "disabledTools", "disabled_tools", "tool_timeout_sec",
		// These members concern the client and have no meaning for Guideway.
		"startup_timeout_sec", "startup_timeout_ms", "autoApprove", "alwaysAllow", "gallery", "version", "name", "description", "trust",
	}
	var others []string
	for _, key := range slices.Sorted(maps.Keys(entry)) {
		if !slices.Contains(known, key) {
			others = append(others, key)
		}
	}
	if len(others) > 0 {
		s.Notes = append(s.Notes, "these members are not imported: "+strings.Join(others, ", "))
	}
}

func (s *Server) setHeader(key, value string) {
	if s.Headers == nil {
		s.Headers = map[string]string{}
	}
	s.Headers[key] = value
}

func asText(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case nil:
		return ""
	}
	return fmt.Sprint(value)
}

func asTexts(value any) map[string]string {
	object, ok := value.(map[string]any)
	if !ok || len(object) == 0 {
		return nil
	}
	texts := map[string]string{}
	for key, each := range object {
		texts[key] = asText(each)
	}
	return texts
}

var (
	// shellReference matches a reference to a variable as Claude Code writes it.
	shellReference = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)(:-[^}]*)?\}`) })
	// otherReference matches an input or a variable of an editor.
	otherReference = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`\$\{(?:input|command|config|workspaceFolder|userHome|file)[^}]*\}`)
	})
)

// convertReferences converts references to the form of Guideway, and moves a bearer token
// from Headers to Bearer.
func (s *Server) convertReferences() {
	each := func(text string) string {
		text = shellReference().ReplaceAllStringFunc(text, func(ref string) string {
			parts := shellReference().FindStringSubmatch(ref)
			switch {
			case parts[1] == "workspaceFolder" || parts[1] == "userHome" || parts[1] == "file":
				return ref
			case parts[2] != "":
				s.Notes = append(s.Notes, fmt.Sprintf("the default of %s is not imported: set the environment variable %s", ref, parts[1]))
			}
			return "${env:" + parts[1] + "}"
		})
		if found := otherReference().FindString(text); found != "" {
			s.Notes = append(s.Notes, found+" is known only to the editor: replace it with a value or ${env:NAME}")
		}
		return text
	}
	s.Command, s.URL, s.Dir = each(s.Command), each(s.URL), each(s.Dir)
	for i := range s.Args {
		s.Args[i] = each(s.Args[i])
	}
	for _, texts := range []map[string]string{s.Env, s.Headers} {
		for _, key := range slices.Sorted(maps.Keys(texts)) {
			texts[key] = each(texts[key])
		}
	}
	for _, key := range slices.Sorted(maps.Keys(s.Headers)) {
		if token, ok := strings.CutPrefix(s.Headers[key], "Bearer "); ok && strings.EqualFold(key, "Authorization") && s.Bearer == "" {
			s.Bearer = token
			delete(s.Headers, key)
		}
	}
}
