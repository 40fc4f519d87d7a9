package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// A file with the names of variables or flags, or in the form of a client's configuration,
// is refused with the text that it should have.

// bareName returns a name without the characters that differ between a file, a variable and
// a flag.
func bareName(name string) string {
	return strings.ToLower(strings.NewReplacer("-", "", "_", "", ".", "").Replace(name))
}

// allNames returns all names of a setting in files, variables and flags.
func (s *Setting) allNames() []string {
	names := []string{s.Name, s.Flag, s.Env, strings.TrimPrefix(s.Env, "GUIDEWAY_")}
	if s.FlagAlias != "" {
		names = append(names, s.FlagAlias)
	}
	names = append(names, s.Aliases...)
	return names
}

// findSetting returns the setting that has a name as a variable, a flag or a key.
func (l *loader) findSetting(name string) *Setting {
	for i := range l.table {
		for _, other := range l.table[i].allNames() {
			if bareName(other) == bareName(name) {
				return &l.table[i]
			}
		}
	}
	return nil
}

// fileValue returns the value of a setting as the file must contain it. ok is false if the
// value is invalid.
func (s *Setting) fileValue(name string, decoded any) (out any, ok bool) {
	if text, is := decoded.(string); is {
		if converted, f := convertValue(name, text); f == nil {
			decoded = converted
		}
	}
	v, f := s.decodeJSON(decoded)
	if text, is := decoded.(string); f != nil && is {
		texts := []string{text}
		if s.Kind == KindList {
			texts = splitCommas(text)
		}
		v, f = s.parseTexts(texts)
	}
	if f == nil {
		v, f = s.checkValue(v)
	}
	if f != nil {
		return nil, false
	}
	switch s.Kind {
	case KindBool:
		return v.flag, true
	case KindCount, KindPercent:
		return v.number, true
	case KindList, KindPaths:
		return v.list, true
	default:
		return v.text, true
	}
}

// addSetting adds a value to a document of settings.
func addSetting(document map[string]any, s *Setting, v any) {
	group, key, nested := strings.Cut(s.Name, ".")
	if !nested {
		document[group] = v
		return
	}
	inner, _ := document[group].(map[string]any)
	if inner == nil {
		inner = map[string]any{}
		document[group] = inner
	}
	inner[key] = v
}

// membersText returns the members of an object as JSON without braces.
func membersText(document map[string]any) string {
	var members []string
	for _, key := range slices.Sorted(maps.Keys(document)) {
		text := ""
		if group, is := document[key].(map[string]any); is {
			text = "{" + membersText(group) + "}"
		} else {
			encoded, _ := json.Marshal(document[key]) // The values of settings always marshal.
			text = string(encoded)
		}
		members = append(members, fmt.Sprintf("%q: %s", key, text))
	}
	return strings.Join(members, ", ")
}

// explainName returns an error with the correct text for a key that is the name of a
// setting in another place, such as the name of its variable or flag. It returns nil for
// any other key.
func (l *loader) explainName(key string, decoded any) *settingError {
	s := l.findSetting(key)
	if s == nil {
		return nil
	}
	message := fmt.Sprintf("%q is not a setting", key)
	document := map[string]any{}
	v, ok := s.fileValue(key, decoded)
	if !ok {
		return &settingError{message: message, fix: fmt.Sprintf("did you mean %q?", s.Name)}
	}
	addSetting(document, s, v)
	return &settingError{message: message, fix: "write " + membersText(document)}
}

// groupSwitch returns an error with the correct text for a group that is written as a
// single value, such as "encryption": "enabled". It returns nil for a group without a mode,
// and for a value that is not a mode.
func (l *loader) groupSwitch(group string, decoded any) *settingError {
	for i := range l.table {
		s := &l.table[i]
		if s.Name != group+".mode" {
			continue
		}
		text := decoded
		if on, is := decoded.(bool); is {
			text = strconv.FormatBool(on)
		}
		for _, alias := range s.Aliases {
			if v, ok := s.fileValue(alias, text); ok {
				document := map[string]any{}
				addSetting(document, s, v)
				return &settingError{message: fmt.Sprintf("%q is %s", group, kindOf(decoded)), fix: "write " + membersText(document)}
			}
		}
	}
	return nil
}

// explainClientFile returns the error for a file that contains the "mcpServers" of an MCP
// client. Its fix suggests the settings that are equivalent to the variables and flags found
// there, if there are any.
func (l *loader) explainClientFile(decoded any) *settingError {
	servers, _ := decoded.(map[string]any)
	document := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		server, _ := servers[name].(map[string]any)
		variables, _ := server["env"].(map[string]any)
		for _, variable := range slices.Sorted(maps.Keys(variables)) {
			l.addFound(document, variable, variables[variable])
		}
		args, _ := server["args"].([]any)
		for _, arg := range args {
			text, _ := arg.(string)
			if flag, is := strings.CutPrefix(text, "--"); is {
				flag, v, _ := strings.Cut(flag, "=")
				l.addFound(document, flag, v)
			}
		}
	}
	const message = `"mcpServers" belongs in the configuration of an MCP client`
	if len(document) == 0 {
		return &settingError{message: message, fix: "remove \"mcpServers\"; guideway install writes the configuration of a client"}
	}
	return &settingError{message: message, fix: "replace \"mcpServers\" with " + membersText(document)}
}

func (l *loader) addFound(document map[string]any, name string, decoded any) {
	if s := l.findSetting(name); s != nil {
		if v, ok := s.fileValue(name, decoded); ok {
			addSetting(document, s, v)
		}
	}
}
