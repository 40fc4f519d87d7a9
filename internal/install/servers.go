package install

import (
	"bytes"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/lists"
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
	d, err := client.Form.parse(src)
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeInvalid, "cannot read the configuration of %s: %w", client.Title, withPosition(err)).
			WithFix("fix the configuration file of %s", client.Title)
	}
	entries := serversOf(d.values()[client.Form.Key])
	if client.ID == "claude-code" && env.Dir != "" {
		// Claude Code stores the servers of a single directory in the same file. They take precedence.
		projects, _ := d.values()["projects"].(map[string]any)
		local, _ := projects[env.Dir].(map[string]any)
		all := maps.Clone(entries)
		maps.Copy(all, serversOf(local[client.Form.Key]))
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
	others := lists.Filter(slices.Sorted(maps.Keys(entry)), func(key string) bool { return !slices.Contains(known, key) })
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

// unifyEntry returns an entry with the members that most clients use: Cline nests the
// connection, opencode has one list for the command and its arguments, and Continue nests
// the headers.
func unifyEntry(entry map[string]any) map[string]any {
	entry = maps.Clone(entry)
	take := func(key string) any {
		value := entry[key]
		delete(entry, key)
		return value
	}
	if transport, ok := entry["transport"].(map[string]any); ok {
		delete(entry, "transport")
		maps.Copy(entry, transport)
	}
	if list, ok := entry["command"].([]any); ok && len(list) > 0 {
		entry["command"], entry["args"] = list[0], list[1:]
	}
	if env, ok := entry["environment"].(map[string]any); ok {
		delete(entry, "environment")
		entry["env"] = env
	}
	if options, ok := entry["requestOptions"].(map[string]any); ok && options["headers"] != nil && len(options) == 1 {
		delete(entry, "requestOptions")
		entry["headers"] = options["headers"]
	}
	if key := asText(take("apiKey")); key != "" && entry["headers"] == nil {
		entry["headers"] = map[string]any{authorizationHeader: "Bearer " + key}
	}
	if hidden, ok := entry["excludeTools"].([]any); ok {
		delete(entry, "excludeTools")
		entry["disabledTools"] = hidden
	}
	if list, ok := entry["tools"].([]any); ok && len(list) == 1 && list[0] == "*" {
		delete(entry, "tools")
	}
	return entry
}

var (
	// dollarReference matches a reference to a variable as Gemini CLI and Qwen Code write it.
	dollarReference = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\$([A-Za-z_][A-Za-z0-9_]*)`) })
	// braceReference matches a reference as opencode writes it, and secretReference one as
	// Continue writes it.
	braceReference  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\{env:([A-Za-z_][A-Za-z0-9_]*)\}`) })
	secretReference = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`\$\{\{\s*secrets\.([A-Za-z_][A-Za-z0-9_]*)\s*\}\}`)
	})
)

// convertOwnReferences returns a value in which the references of one client to variables
// have the form of Guideway.
func convertOwnReferences(client string, value any) any {
	form := map[string]func() *regexp.Regexp{
		"gemini": dollarReference, "qwen": dollarReference, "opencode": braceReference, "continue": secretReference,
	}[client]
	if form == nil {
		return value
	}
	switch v := value.(type) {
	case string:
		return form().ReplaceAllString(v, "$${env:$1}")
	case []any:
		return lists.Map(v, func(each any) any { return convertOwnReferences(client, each) })
	case map[string]any:
		members := map[string]any{}
		for key, each := range v {
			members[key] = convertOwnReferences(client, each)
		}
		return members
	}
	return value
}

// Paste lists the servers in a text that was copied from a client's configuration or from a
// README: JSON with comments, with the member "mcpServers" (Claude, Cursor, Windsurf) or
// "servers" (VS Code), the servers by their names without that member, a single server, or
// TOML with the table "mcp_servers" (Codex). It omits Guideway's own entry.
func Paste(env Env, src []byte) ([]Server, error) {
	entries, err := parsePasted(bytes.TrimSpace(bytes.TrimPrefix(src, bom)))
	if err != nil {
		return nil, err
	}
	var list []Server
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		entry, ok := entries[name].(map[string]any)
		if !ok {
			continue
		}
		s := readServer(name, entry)
		if !looksOurs(env, Entry{Command: s.Command, Args: s.Args}, "") {
			list = append(list, s)
		}
	}
	if len(list) == 0 {
		return nil, guideway.Errorf(guideway.CodeInvalid, "the text contains no MCP server other than Guideway").
			WithFix(`paste something like {"mcpServers": {"files": {"command": "npx", "args": ["…"]}}}`)
	}
	return list, nil
}

// parsePasted returns the entries of a text by their names.
func parsePasted(text []byte) (map[string]any, error) {
	if bytes.HasPrefix(text, []byte("[")) && bytes.Contains(text, []byte("mcp_servers")) {
		return pastedTOML(text)
	}
	if bytes.HasPrefix(text, []byte(`"`)) { // members without the surrounding object
		text = slices.Concat([]byte("{"), bytes.TrimSuffix(text, []byte(",")), []byte("}"))
	}
	object, err := decodeJSONC(text)
	if err != nil {
		if bytes.Contains(text, []byte("mcp_servers")) {
			return pastedTOML(text)
		}
		return nil, badPaste(err)
	}
	return entriesOf(object), nil
}

// pastedTOML returns the entries of a table of Codex.
func pastedTOML(text []byte) (map[string]any, error) {
	d, err := readTOML(text, "mcp_servers")
	if err != nil {
		return nil, badPaste(err)
	}
	return serversOf(d.tree[d.key]), nil
}

func badPaste(err error) error {
	return guideway.Errorf(guideway.CodeInvalid, "cannot read the text: %w", withPosition(err)).
		WithFix("paste the whole JSON object with its braces, or the whole TOML table")
}

// entriesOf returns the entries in an object.
func entriesOf(object map[string]any) map[string]any {
	for _, key := range []string{"mcpServers", "servers", "mcp_servers", "mcp"} {
		if inner, ok := object[key].(map[string]any); ok && !isServer(inner) {
			if key == "mcp" {
				return entriesOf(inner)
			}
			return inner
		}
	}
	if isServer(object) {
		return map[string]any{serverName(object): object}
	}
	return object
}

// isServer reports whether an object is a single server.
func isServer(object map[string]any) bool {
	for _, key := range []string{"command", "url", "serverUrl", "httpUrl"} {
		if asText(object[key]) != "" {
			if _, nested := object[key].(map[string]any); !nested {
				return true
			}
		}
	}
	return false
}

// serverName returns a name for a server that has none.
func serverName(object map[string]any) string {
	if name := asText(object["name"]); name != "" {
		return name
	}
	if args, ok := object["args"].([]any); ok {
		for _, each := range args {
			if text := asText(each); text != "" && !strings.HasPrefix(text, "-") {
				return strings.TrimPrefix(path.Base(text), "server-")
			}
		}
	}
	if command := asText(object["command"]); command != "" {
		return path.Base(command)
	}
	return "server"
}
