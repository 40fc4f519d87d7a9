package checksfile

import (
	"encoding/json"
	"path"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway/internal/platform/jsontext"
	"github.com/pelletier/go-toml/v2"
)

// metadata are the members of package files that define no command: a new version or
// dependency needs no approval.
var metadata = map[string][]string{
	"package.json": {
		"name", "version", "description", "keywords", "homepage", "bugs", "license", "author", "contributors", "funding", "repository", "private",
		"files", "main", "module", "exports", "types", "typings", "bin",
		"dependencies", "devDependencies", "peerDependencies", "peerDependenciesMeta", "optionalDependencies",
	},
	"pyproject.toml": {"project", "dependency-groups"},
	"Cargo.toml": {
		"dependencies", "dev-dependencies", "build-dependencies", "package.name", "package.version", "package.description", "package.authors",
		"package.license", "package.repository", "package.homepage", "package.documentation", "package.readme", "package.keywords", "package.categories",
		"workspace.dependencies", "workspace.package",
	},
}

// definingPart returns the part of a file that defines commands, and describes the rest. A
// file of an unknown form is used as a whole.
func definingPart(base, text string) (part, left string) {
	members, ok := metadata[base]
	if !ok {
		return text, ""
	}
	var content map[string]any
	decode, encode := toml.Unmarshal, toml.Marshal
	if base == "package.json" {
		decode, encode = json.Unmarshal, jsontext.Indent
	}
	if decode([]byte(text), &content) != nil || content == nil {
		return text, ""
	}
	for _, name := range members {
		parent, key, nested := strings.Cut(name, ".")
		if !nested {
			delete(content, name)
		} else if table, ok := content[parent].(map[string]any); ok {
			delete(table, key)
		}
	}
	rest, err := encode(content)
	if err != nil {
		return text, ""
	}
	return strings.TrimRight(string(rest), "\n") + "\n", strings.Join(members, ", ")
}

// followRecipes adds the files of the commands that a file defines for the words of the
// calling command.
func (c *collector) followRecipes(file, tool string, words []string) error {
	text := c.files[file].Text
	switch path.Base(file) {
	case "package.json":
		return c.followScripts(file, text, words)
	case "GNUmakefile", "makefile", "Makefile":
		if tool == "make" || tool == "gmake" {
			return c.followTargets(file, text, words)
		}
	}
	return nil
}

// followScripts follows the scripts of a package.json that the words name.
func (c *collector) followScripts(file, text string, words []string) error {
	var content struct {
		Scripts map[string]any `json:"scripts"`
	}
	if json.Unmarshal([]byte(text), &content) != nil {
		return nil
	}
	for _, word := range words {
		if word == "t" || word == "tst" { // abbreviations of npm test
			word = "test"
		}
		for _, name := range []string{"pre" + word, word, "post" + word} {
			script, ok := content.Scripts[name].(string)
			if !ok || c.seen[file+"\n"+name] {
				continue
			}
			c.seen[file+"\n"+name] = true
			if err := c.addText(script); err != nil {
				return err
			}
		}
	}
	return nil
}

var (
	makeInclude  = compileOnce(`^ *[-s]?include\s+(.+)`)
	makeVariable = compileOnce(`^ *(?:export +|override +)*([A-Za-z_][A-Za-z0-9_.]*) *[:?+!]{0,3}= *(.*)`)
	makeTarget   = compileOnce(`^([^\s#:=][^#:=]*?) *::?([^=]|$)`)
	makeUse      = compileOnce(`\$[({]([A-Za-z_][A-Za-z0-9_.]*)[)}]`)
)

// target is a target of a makefile with the targets that it needs.
type target struct{ name, needs, text string }

// makefile is the part of a makefile that this package reads.
type makefile struct {
	targets   []target
	variables map[string]string
	includes  []string
}

// parseMakefile reads the targets, the variables and the included files of a makefile. It
// need not be exact: a word that is no file has no effect.
func parseMakefile(text string) *makefile {
	m := &makefile{variables: map[string]string{}}
	var current []int
	for line := range strings.SplitSeq(strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\\\n", " "), "\n") {
		if strings.HasPrefix(line, "\t") {
			for _, i := range current {
				m.targets[i].text += "\n" + line
			}
		} else if found := makeInclude().FindStringSubmatch(line); found != nil {
			m.includes = append(m.includes, strings.Fields(found[1])...)
		} else if found := makeVariable().FindStringSubmatch(line); found != nil {
			m.variables[found[1]] += " " + found[2]
		} else if found := makeTarget().FindStringSubmatch(line); found != nil {
			current = nil
			_, rest, _ := strings.Cut(line, ":")
			needs, inline, _ := strings.Cut(strings.TrimPrefix(rest, ":"), ";")
			for name := range strings.FieldsSeq(found[1]) {
				current = append(current, len(m.targets))
				m.targets = append(m.targets, target{name, needs, inline})
			}
		}
	}
	return m
}

// expand replaces variables by their values, as far as the result stays bounded.
func (m *makefile) expand(text string) string {
	for range 5 {
		size := len(text)
		text = makeUse().ReplaceAllStringFunc(text, func(use string) string {
			name := makeUse().FindStringSubmatch(use)[1]
			value := m.variables[name]
			if name == "MAKE" {
				value = "make"
			}
			if size += len(value); size > maxDefining {
				return ""
			}
			return value
		})
	}
	return text
}

// followTargets follows the targets of a makefile that the words name, or the first target,
// and adds the included makefiles.
func (c *collector) followTargets(file, text string, words []string) error {
	m := parseMakefile(text)
	if err := c.addIncludes(m, path.Dir(file)); err != nil {
		return err
	}
	isTarget := func(name string) bool {
		return slices.ContainsFunc(m.targets, func(t target) bool { return t.name == name })
	}
	if i := slices.IndexFunc(m.targets, func(t target) bool { return !strings.HasPrefix(t.name, ".") }); i >= 0 && !slices.ContainsFunc(words, isTarget) {
		words = []string{m.targets[i].name}
	}
	for queue := slices.Clone(words); len(queue) > 0; queue = queue[1:] {
		key := file + "\n" + queue[0]
		if c.seen[key] {
			continue
		}
		c.seen[key] = true
		for _, t := range m.targets {
			if t.name != queue[0] {
				continue
			}
			queue = append(queue, strings.Fields(m.expand(t.needs))...)
			if err := c.addText(m.expand(t.text)); err != nil {
				return err
			}
		}
	}
	return nil
}

// addIncludes adds the makefiles that a makefile includes, and their content to m.
func (c *collector) addIncludes(m *makefile, dir string) error {
	for i := 0; i < len(m.includes) && i < maxFiles; i++ {
		for _, name := range strings.Fields(m.expand(m.includes[i])) {
			at := path.Join(dir, name)
			known := c.files[at] != nil
			found, err := c.addFile(at, false)
			if err != nil {
				return err
			}
			if !found || known {
				continue
			}
			more := parseMakefile(c.files[at].Text)
			m.includes, m.targets = append(m.includes, more.includes...), append(m.targets, more.targets...)
			for name, value := range more.variables {
				m.variables[name] += " " + value
			}
		}
	}
	return nil
}
