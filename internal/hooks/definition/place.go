package definition

import (
	"path"
	"strings"
)

// Place is the location of a document in a source.
type Place struct {
	// Kind is "" if the file is not a document of the dialect.
	Kind Kind
	// Plain is set if the document is a plain script, not JSON or YAML.
	Plain bool
	// Name is the file name without extension: the ID of a plain script.
	Name string
}

// PlaceOf returns the place of a document by its slash-separated path in a source: graphs
// are in the folder hooks, modules in hooks/modules.
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

// PlainModule returns the module of a plain script.
func PlainModule(p Place, file string, script []byte) *Module {
	return &Module{ID: p.Name, Name: p.Name, Script: string(script), File: file}
}
