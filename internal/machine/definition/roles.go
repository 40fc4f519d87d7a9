package definition

import (
	"encoding/json"
	"slices"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/wildcard"
	"github.com/guideway-dev/guideway/internal/workflow/doc"
	"github.com/guideway-dev/guideway/internal/workflow/shape"
)

// readRoles reads roles by name.
func (p *parser) readRoles(at shape.Place, where string) map[string]*Role {
	if !p.Open(at) {
		return nil
	}
	out := make(map[string]*Role, len(at.Node.Members))
	for _, m := range at.Node.Members {
		if m.Key == "$schema" {
			continue
		}
		one := at.Key(m.Key)
		one = one.In("in role " + shape.Quote(m.Key) + " " + where)
		if r := p.readRole(one, m.Key); r != nil {
			out[m.Key] = r
		}
	}
	return out
}

// readRole reads one role. It ignores members of later SynthDev versions about agents that
// start other agents.
func (p *parser) readRole(at shape.Place, name string) *Role {
	if !p.Object(at, "level", "model", "systemMessage", "includedTools", "excludedTools", "parsingTools", "reminder", "examples",
		"maxTokens", "temperature", "agent_description", "enabled_agents", "can_create_tasks_for") {
		return nil
	}
	p.Require(at, "systemMessage")
	r := &Role{
		Name:          name,
		Level:         Level(p.Choice(at.Key("level"), shape.CodeEnum, string(LevelBase), string(LevelSmart), string(LevelFast))),
		Model:         p.Text(at.Key("model"), 1, 256),
		SystemMessage: p.Text(at.Key("systemMessage"), 1, 0),
		Included:      p.Texts(at.Key("includedTools"), 1, 256),
		Excluded:      p.Texts(at.Key("excludedTools"), 1, 256),
		HasExcluded:   at.Node.Get("excludedTools") != nil,
		Parsing:       readList(p, at.Key("parsingTools"), "parsing tool", "name", p.readParsingTool),
		Reminder:      p.Text(at.Key("reminder"), 0, 0),
		MaxTokens:     p.readInteger(at.Key("maxTokens"), 1, 0),
	}
	if r.Level == "" {
		r.Level = LevelBase
	}
	if t := at.Key("temperature"); t.Node != nil {
		if t.Node.Kind != doc.Number || t.Node.Num < 0 || t.Node.Num > 2 {
			p.Errorf(t, shape.CodeRange, "write a number from 0 to 2", "Field 'temperature' %s must be a number from 0 to 2, but it is %s.", t.Where, shape.Describe(t.Node))
		} else {
			r.Temperature = &t.Node.Num
		}
	}
	if at.Node.Get("includedTools") != nil && at.Node.Get("excludedTools") != nil {
		p.Errorf(at.Key("excludedTools"), CodeRoleTools, "keep one of the two lists", "There are both 'includedTools' and 'excludedTools' %s.", at.Where)
	}
	r.Examples = readList(p, at.Key("examples"), "example", "role", p.readExample)
	return r
}

// readExample reads one example message.
func (p *parser) readExample(at shape.Place) json.RawMessage {
	p.Object(at, "role", "content", "name", "arguments")
	p.Require(at, "role")
	p.Choice(at.Key("role"), shape.CodeEnum, "user", "assistant", "tool", "system")
	p.Text(at.Key("content"), 0, 0)
	return p.rawJSON(at)
}

// readParsingTool reads a function whose call is the answer.
func (p *parser) readParsingTool(at shape.Place) Tool {
	p.Object(at, "type", "function", "parsingOnly")
	p.Require(at, "function")
	p.Choice(at.Key("type"), shape.CodeEnum, "function")
	p.Flag(at.Key("parsingOnly"))
	f := at.Key("function")
	if !p.Object(f, "name", "description", "parameters", "strict") {
		return Tool{}
	}
	p.Require(f, "name")
	t := Tool{Name: p.readToolName(f.Key("name")), Description: p.Text(f.Key("description"), 0, 0)}
	if parameters := f.Key("parameters"); p.Open(parameters) {
		t.Parameters = p.rawJSON(parameters)
	}
	return t
}

// readToolName reads a name that models accept for a function.
func (p *parser) readToolName(at shape.Place) string {
	text := p.Text(at, 1, 64)
	for _, c := range text {
		if c != '_' && c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			p.Errorf(at, shape.CodePattern, "use only letters, digits, _ and -", "Field '%s' %s has the value %s, which models do not accept as a function name.", at.Name, at.Where, shape.Quote(text))
			break
		}
	}
	return text
}

// ParseRoles parses a role file. It returns all errors; the roles are nil if there are any.
func ParseRoles(file string, data []byte) (map[string]*Role, []guideway.Diagnostic) {
	root, found := doc.Parse(file, data, doc.Limits{})
	if root == nil {
		return nil, found
	}
	p, at := newParser(file), shape.Root(root, "roles")
	if !p.Document(at, "A role file", "write one object with a member for each role") {
		return nil, p.Found
	}
	p.Canonical = doc.Mark(root)
	roles := p.readRoles(at, "")
	if found = append(found, p.Findings(guideway.SeverityError)...); len(found) > 0 {
		return nil, found
	}
	return roles, nil
}

// Allows reports whether the role may use a tool.
func (r *Role) Allows(name string) bool {
	fits := func(pattern string) bool { return wildcard.Match(pattern, name) }
	if r.HasExcluded {
		return !slices.ContainsFunc(r.Excluded, fits)
	}
	return slices.ContainsFunc(r.Included, fits)
}

// WantsTools reports whether any role of the machine has tools other than parsing tools.
func (m *Machine) WantsTools() bool {
	for _, r := range m.Roles {
		if r.HasExcluded || len(r.Included) > 0 {
			return true
		}
	}
	return false
}

// AllowsTool reports whether any role of the machine may use a tool.
func (m *Machine) AllowsTool(name string) bool {
	for _, r := range m.Roles {
		if r.Allows(name) {
			return true
		}
	}
	return false
}

// Policy returns the first policy that matches a tool, or the zero value if none matches.
func (m *Machine) Policy(name string) ToolPolicy {
	for _, p := range m.Tools {
		if wildcard.Match(p.Pattern, name) {
			return p
		}
	}
	return ToolPolicy{}
}
