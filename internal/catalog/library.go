package catalog

import (
	"fmt"
	"path"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog/library"
)

// buildLibrary builds the library of a snapshot whose definitions are already merged, and
// adds the guides next to each phase workflow to the workflow's layout.
func (s *Snapshot) buildLibrary(states []state) {
	sources := make([]library.Source, len(states))
	for i := range states {
		sources[i] = s.librarySource(&states[i])
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

// librarySource returns the library documents of a source.
func (s *Snapshot) librarySource(source *state) library.Source {
	shelf := library.Source{Name: source.info.Name, Owners: map[string]string{}}
	for _, r := range source.records {
		switch {
		case r.hookPlace.Kind != "", r.machineFile:
		case r.place.Kind == "":
			s.assignOwner(shelf.Owners, r)
		case r.item != nil:
			shelf.Items = append(shelf.Items, r.item)
		default:
			shelf.Broken = append(shelf.Broken, library.Broken{Place: r.place, ID: r.guessedID, Why: r.found[0]})
		}
	}
	return shelf
}

// assignOwner records the workflow of a folder, and warns if the file name suggests a
// different workflow.
func (s *Snapshot) assignOwner(owners map[string]string, r *record) {
	dir, base := path.Split(r.name)
	stem := stemOf(base)
	folder := strings.TrimSuffix(dir, "/")
	if r.good == nil {
		if folder == stem {
			owners[folder] = r.guessedID
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
		s.diagnostics = append(s.diagnostics, newWarning(library.CodeFileID, r.path,
			fmt.Sprintf("the workflow has the id %q but its file is named %q; tools use the id", d.ID, base),
			fmt.Sprintf("rename the file to %s%s, or change the id in it", d.ID, path.Ext(base))))
	}
}

// guideFiles returns the file names of guides. It returns nil without guides, because their
// location is then unknown.
func guideFiles(guides []*library.Entry) []string {
	var files []string
	for _, guide := range guides {
		files = append(files, path.Base(guide.Path))
	}
	return files
}
