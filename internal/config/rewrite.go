package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// A file that has the names of variables or flags, or the shape of a client's
// configuration, is refused with the text that it should have: what it says is
// known, only its place is another one.

// bare is a name without what differs between a file, a variable and a flag.
func bare(name string) string {
	return strings.ToLower(strings.NewReplacer("-", "", "_", "", ".", "").Replace(name))
}

// names are all that a setting is called elsewhere.
func (s *setting) names() []string {
	names := []string{s.Name, s.Flag, s.Env, strings.TrimPrefix(s.Env, "GUIDEWAY_")}
	if s.FlagAlias != "" {
		names = append(names, s.FlagAlias)
	}
	for _, alias := range s.Aliases {
		names = append(names, alias.Name)
	}
	return names
}

// known finds the setting that has a name elsewhere.
func (l *loader) known(name string) *setting {
	for i := range l.table {
		for _, other := range l.table[i].names() {
			if bare(other) == bare(name) {
				return &l.table[i]
			}
		}
	}
	return nil
}

// literal is what a setting's value looks like in the file, whichever way it was
// written; ok is false where it makes no sense.
func (s *setting) literal(name string, decoded any) (out any, ok bool) {
	for _, alias := range s.Aliases {
		if alias.Name == name {
			decoded = convertedBy(alias, decoded)
		}
	}
	v, f := s.decode(decoded)
	if text, is := decoded.(string); f != nil && is {
		texts := []string{text}
		if s.Kind == KindList {
			texts = splitCommas(text)
		}
		v, f = s.read(texts)
	}
	if f == nil {
		v, f = s.checked(v)
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

// place puts a value where the file has it.
func place(document map[string]any, s *setting, v any) {
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

// write gives members of an object as they stand in a file.
func write(document map[string]any) string {
	var members []string
	for _, key := range slices.Sorted(maps.Keys(document)) {
		text := ""
		if group, is := document[key].(map[string]any); is {
			text = "{" + write(group) + "}"
		} else {
			encoded, _ := json.Marshal(document[key]) // texts, numbers and lists of texts always encode
			text = string(encoded)
		}
		members = append(members, fmt.Sprintf("%q: %s", key, text))
	}
	return strings.Join(members, ", ")
}

// rewritten says how a member is to be written whose key is the setting's name
// elsewhere; nil where it is none.
func (l *loader) rewritten(key string, decoded any) *fault {
	s := l.known(key)
	if s == nil {
		return nil
	}
	message := fmt.Sprintf("%q is not a setting", key)
	document := map[string]any{}
	v, ok := s.literal(key, decoded)
	if !ok {
		return &fault{message: message, fix: fmt.Sprintf("did you mean %q?", s.Name)}
	}
	place(document, s, v)
	return &fault{message: message, fix: "write " + write(document)}
}

// groupSwitch is the setting that a group is taken for which is written as a single
// value: "encryption": "enabled".
func (l *loader) groupSwitch(group string, decoded any) *fault {
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
			if v, ok := s.literal(alias.Name, text); ok {
				document := map[string]any{}
				place(document, s, v)
				return &fault{message: fmt.Sprintf("%q holds %s", group, kindOf(decoded)), fix: "write " + write(document)}
			}
		}
	}
	return nil
}

// convertedBy reads a text as the variable of another system has it.
func convertedBy(alias Alias, decoded any) any {
	if text, ok := decoded.(string); ok && alias.convert != nil {
		if converted, f := alias.convert(text); f == nil {
			return converted
		}
	}
	return decoded
}

// clientFile says what the settings are that a client's configuration would give:
// those of its variables and flags.
func (l *loader) clientFile(decoded any) *fault {
	servers, _ := decoded.(map[string]any)
	document := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		server, _ := servers[name].(map[string]any)
		variables, _ := server["env"].(map[string]any)
		for _, variable := range slices.Sorted(maps.Keys(variables)) {
			l.take(document, variable, variables[variable])
		}
		args, _ := server["args"].([]any)
		for _, arg := range args {
			text, _ := arg.(string)
			if flag, is := strings.CutPrefix(text, "--"); is {
				flag, v, _ := strings.Cut(flag, "=")
				l.take(document, flag, v)
			}
		}
	}
	const message = `"mcpServers" belongs into the configuration of an MCP client`
	if len(document) == 0 {
		return &fault{message: message, fix: "remove it; guideway install writes it for a client"}
	}
	return &fault{message: message, fix: "write in its place " + write(document)}
}

func (l *loader) take(document map[string]any, name string, decoded any) {
	if s := l.known(name); s != nil {
		if v, ok := s.literal(name, decoded); ok {
			place(document, s, v)
		}
	}
}
