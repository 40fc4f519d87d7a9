package catalog

import (
	"fmt"
	"path"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog/library"
)

// shelve makes the library of a snapshot whose definitions are merged, and tells
// each phase workflow what lies beside it.
func (s *Snapshot) shelve(states []state) {
	sources := make([]library.Source, len(states))
	for i := range states {
		sources[i] = s.shelf(&states[i])
	}
	lib, found := library.Build(sources, func(id string) bool { return s.byID[id] != nil || s.broken[id] != nil })
	s.library = lib
	s.diagnostics = append(s.diagnostics, found...)
	for id, entry := range s.byID {
		if entry.Dialect == guideway.DialectPhases {
			entry.layout.Guides = guideFiles(lib.Texts(library.KindGuide, id))
		}
	}
}

// shelf is what a source gives to the library.
func (s *Snapshot) shelf(source *state) library.Source {
	shelf := library.Source{Name: source.info.Name, Owners: map[string]string{}}
	for _, r := range source.records {
		switch {
		case r.hookPlace.Kind != "", r.machineFile:
		case r.place.Kind == "":
			s.own(shelf.Owners, r)
		case r.item != nil:
			shelf.Items = append(shelf.Items, r.item)
		default:
			shelf.Broken = append(shelf.Broken, library.Broken{Place: r.place, ID: r.claims, Why: r.found[0]})
		}
	}
	return shelf
}

// own notes which workflow a folder belongs to, and warns where the name of the
// file leads people astray.
func (s *Snapshot) own(owners map[string]string, r *record) {
	dir, base := path.Split(r.name)
	stem := stemOf(base)
	folder := strings.TrimSuffix(dir, "/")
	if r.good == nil {
		if folder == stem {
			owners[folder] = r.claims
		}
		return
	}
	d := r.good.head
	if d.Dialect != guideway.DialectPhases {
		return
	}
	if folder == stem {
		owners[folder] = d.ID
	}
	if stem != d.ID {
		s.diagnostics = append(s.diagnostics, notice(library.CodeFileID, r.path,
			fmt.Sprintf("the workflow is called %q and its file %q; tools know it by its id", d.ID, base),
			fmt.Sprintf("name the file %s%s, or change the id", d.ID, path.Ext(base))))
	}
}

// guideFiles are the names of the files of guides; nil where there are none, for
// then nothing is known of where they are.
func guideFiles(guides []*library.Entry) []string {
	var files []string
	for _, guide := range guides {
		files = append(files, path.Base(guide.Path))
	}
	return files
}
