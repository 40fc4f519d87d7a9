package hooks

import (
	"path"
	"strings"
)

// Place is where a document of the dialect lies in a source.
type Place struct {
	// Kind is "" for what is none.
	Kind Kind
	// Plain says that the document is a script as it is, and not in JSON or
	// YAML.
	Plain bool
	// Name is the file's, without extension: the id of a plain script.
	Name string
}

// PlaceOf gives the place of a document by its name in a source, with slashes:
// graphs lie in the folder hooks, modules in hooks/modules.
func PlaceOf(name string) Place {
	rest, ok := strings.CutPrefix(name, "hooks/")
	if !ok {
		return Place{}
	}
	ext := path.Ext(rest)
	p := Place{Kind: KindGraph, Name: strings.TrimSuffix(path.Base(rest), ext)}
	if inside, ok := strings.CutPrefix(rest, "modules/"); ok {
		p.Kind, rest = KindModule, inside
	}
	if strings.Contains(rest, "/") {
		return Place{}
	}
	switch ext = strings.ToLower(ext); {
	case ext == ".json", ext == ".yaml", ext == ".yml":
		return p
	case p.Kind == KindModule && (ext == ".js" || ext == ".mjs"):
		p.Plain = true
		return p
	default:
		return Place{}
	}
}

// PlainModule makes the module of a file that is a script as it is.
func PlainModule(p Place, file string, script []byte) *Module {
	return &Module{ID: p.Name, Name: p.Name, Script: string(script), File: file}
}
