package install

import (
	"maps"
	"slices"
	"strings"
)

// shape is the form of the entries of a client.
type shape struct {
	// Wrap is the member of an entry that contains the connection. It is empty if the
	// connection is the entry.
	Wrap string
	// Local and Remote are the values of the member type of a program and of a URL. They are
	// empty if entries have no such member.
	Local, Remote string
	// URL is the member of the URL, and Env that of the environment variables.
	URL, Env string
	// Auth is the path of the token, if it is not the usual header.
	Auth []string
	// List reports whether the member command is a list that includes the arguments.
	List bool
	// More are further members of a new entry: texts, lists of texts or flags.
	More map[string]any
}

// field is a member of an object to write. Its value is a string, a bool, a []string, a
// []any, a []field or JSON.
type field struct {
	key string
	val any
}

// change is a value to set at a path of keys.
type change struct {
	path []string
	val  any
}

// nestValue wraps val in an object for each key of the path.
func nestValue(path []string, val any) []field {
	for i := len(path) - 1; i > 0; i-- {
		val = []field{{path[i], val}}
	}
	return []field{{path[0], val}}
}

// connectionOf returns the connection in an entry and its path.
func (s shape) connectionOf(entry map[string]any) (connection map[string]any, path []string) {
	if inner, ok := entry[s.Wrap].(map[string]any); ok && s.Wrap != "" {
		return inner, []string{s.Wrap}
	}
	return entry, nil
}

// authorizationPath returns the path of the token in a connection. The case of the header is
// that of the file.
func (s shape) authorizationPath(connection map[string]any) []string {
	if s.Auth != nil {
		return s.Auth
	}
	headers, _ := connection["headers"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		if strings.EqualFold(name, authorizationHeader) {
			return []string{"headers", name}
		}
	}
	return []string{"headers", authorizationHeader}
}

// readEntry returns the entry of a server. A member of another type counts as missing.
func (s shape) readEntry(entry map[string]any) Entry {
	connection, _ := s.connectionOf(entry)
	var e Entry
	e.Command, _ = connection["command"].(string)
	e.URL, _ = connection[s.URL].(string)
	e.Args = textsOf(connection["args"])
	if s.List {
		if e.Args = textsOf(connection["command"]); len(e.Args) > 0 {
			e.Command, e.Args = e.Args[0], e.Args[1:]
		}
	}
	variables, _ := connection[s.Env].(map[string]any)
	for name, value := range variables {
		// Other values are not variables that Entry can hold; they stay in the file.
		if text, ok := value.(string); ok {
			e.Env = mergeVariables(e.Env, map[string]string{name: text})
		}
	}
	var value any = connection
	for _, key := range s.authorizationPath(connection) {
		object, _ := value.(map[string]any)
		value = object[key]
	}
	e.Authorization, _ = value.(string)
	return e
}

// textsOf returns the texts of a list, or nil for another value.
func textsOf(value any) []string {
	list, _ := value.([]any)
	var texts []string
	for _, each := range list {
		texts = append(texts, asText(each))
	}
	return texts
}

// isPatchable reports whether an entry has the same kind of connection as e, so that the
// user's additions can stay. old is the entry as read.
func (s shape) isPatchable(entry map[string]any, old, e Entry) bool {
	connection, _ := s.connectionOf(entry)
	isObject := func(key string) bool {
		_, object := connection[key].(map[string]any)
		return object || connection[key] == nil
	}
	kind := asText(connection["type"])
	if e.URL != "" {
		return old.URL != "" && connection["command"] == nil && (kind == "" || kind == s.Remote) &&
			(len(s.Auth) == 1 || isObject(s.authorizationPath(connection)[0])) && (old.Authorization == "" || e.Authorization != "")
	}
	for _, key := range []string{"url", "httpUrl", "serverUrl"} {
		if connection[key] != nil {
			return false
		}
	}
	return old.Command != "" && slices.Contains([]string{"", "stdio", "local"}, kind) && isObject(s.Env)
}

// changedValues returns the values of an entry that differ from those of an earlier one.
func (s shape) changedValues(entry map[string]any, old, e Entry) []change {
	connection, at := s.connectionOf(entry)
	var list []change
	add := func(differs bool, val any, path ...string) {
		if differs {
			list = append(list, change{slices.Concat(at, path), val})
		}
	}
	command, args := old.Command != e.Command, !slices.Equal(old.Args, e.Args)
	switch {
	case e.URL != "":
		add(s.Remote != "" && connection["type"] == nil, s.Remote, "type")
		add(old.URL != e.URL, e.URL, s.URL)
		add(old.Authorization != e.Authorization, e.Authorization, s.authorizationPath(connection)...)
	case s.List:
		add(command || args, append([]string{e.Command}, e.Args...), "command")
	default:
		add(command, e.Command, "command")
		add(args, e.Args, "args")
	}
	for _, name := range slices.Sorted(maps.Keys(e.Env)) {
		have, ok := old.Env[name]
		add(!ok || have != e.Env[name], e.Env[name], s.Env, name)
	}
	return list
}

// entryFields returns the members of a new entry.
func (s shape) entryFields(e Entry) []field {
	var f []field
	add := func(key string, val any) { f = append(f, field{key, val}) }
	kind := s.Local
	if e.URL != "" {
		kind = s.Remote
	}
	if kind != "" {
		add("type", kind)
	}
	switch {
	case e.URL != "":
		add(s.URL, e.URL)
		if e.Authorization != "" {
			f = append(f, nestValue(s.authorizationPath(nil), e.Authorization)...)
		}
	case s.List:
		add("command", append([]string{e.Command}, e.Args...))
	default:
		add("command", e.Command)
		add("args", e.Args)
	}
	if len(e.Env) > 0 {
		add(s.Env, variableFields(e.Env))
	}
	if s.Wrap != "" {
		f = []field{{s.Wrap, f}}
	}
	for _, key := range slices.Sorted(maps.Keys(s.More)) {
		if list, ok := s.More[key].([]any); ok {
			add(key, textsOf(list))
		} else {
			add(key, s.More[key])
		}
	}
	return f
}

// variableFields returns environment variables as members in order.
func variableFields(env map[string]string) []field {
	var list []field
	for _, k := range slices.Sorted(maps.Keys(env)) {
		list = append(list, field{k, env[k]})
	}
	return list
}
