package install

import (
	"bytes"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
)

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
