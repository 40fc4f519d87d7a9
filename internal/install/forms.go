package install

import (
	"maps"
	"regexp"
	"sync"
)

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
		list := make([]any, len(v))
		for i, each := range v {
			list[i] = convertOwnReferences(client, each)
		}
		return list
	case map[string]any:
		members := map[string]any{}
		for key, each := range v {
			members[key] = convertOwnReferences(client, each)
		}
		return members
	}
	return value
}
