package catalog

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog/library"
	"github.com/guideway-dev/guideway/internal/platform/digest"
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

// Published is a served document, for programs that mirror this catalog.
type Published struct {
	// Name is unique among the published documents.
	Name string
	// Sum is the SHA-256 of the content in hexadecimal digits.
	Sum  string
	Size int64
	open func() []byte
}

// Content returns the content, or nil if it has changed since the snapshot.
func (p *Published) Content() []byte {
	data := p.open()
	if digest.Hex(data) != p.Sum {
		return nil
	}
	return data
}

// Published returns the served documents, sorted by name, except the bundled ones, which
// every mirror has.
func (s *Snapshot) Published() []Published {
	byName := map[string]Published{}
	for _, p := range s.published {
		byName[p.Name] = p.Published // later ones have a higher rank
	}
	return slices.SortedFunc(maps.Values(byName), func(a, b Published) int { return cmp.Compare(a.Name, b.Name) })
}

// publishedDocument is a document of a snapshot that may be published.
type publishedDocument struct {
	Published
	id string // for a workflow
}

// collectPublished collects the documents to publish, from states in order of rank.
func (s *Snapshot) collectPublished(states []state) {
	taken := map[string]string{} // workflow ids by name
	for i := range states {
		source := &states[i]
		if source.info.Trust == TrustBundled {
			continue
		}
		for _, r := range source.records {
			if r.broken || r.content == nil {
				continue
			}
			p := publishedDocument{Published: Published{Name: r.name, Sum: hex.EncodeToString(r.sum[:]), Size: r.size, open: r.content}}
			if r.good != nil {
				p.id = r.good.head.ID
				entry := s.byID[p.id]
				if entry == nil || entry.loaded != r.good {
					continue
				}
				if other, is := taken[p.Name]; is && other != p.id {
					ext := path.Ext(p.Name)
					p.Name = strings.TrimSuffix(p.Name, ext) + "-" + source.info.Name + ext
				}
				taken[p.Name] = p.id
			}
			s.published = append(s.published, p)
		}
	}
}

// contentReader returns a function that reads a document.
func (c *Catalog) contentReader(document Document) func() []byte {
	return func() []byte {
		data, _ := c.readContent(context.Background(), document) // Callers skip a document that cannot be read.
		return data
	}
}
