package catalog

import (
	"cmp"
	"context"
	"encoding/hex"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway/internal/platform/digest"
)

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
