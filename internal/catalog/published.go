package catalog

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"path"
	"slices"
	"strings"
)

// Published is a document that is served, for others who follow this catalog.
type Published struct {
	// Name is unique among what is published.
	Name string
	// Sum is the SHA-256 of the content in hexadecimal digits.
	Sum  string
	Size int64
	open func() []byte
}

// Content gives the content; nil where it is another by now.
func (p *Published) Content() []byte {
	data := p.open()
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != p.Sum {
		return nil
	}
	return data
}

// Published gives the documents that are served, in the order of their names,
// without those that come with the program: whoever follows has these.
func (s *Snapshot) Published() []Published {
	byName := map[string]Published{}
	for _, p := range s.shown {
		byName[p.Name] = p.Published // later ones are of a higher rank
	}
	list := make([]Published, 0, len(byName))
	for _, p := range byName {
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b Published) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// published is a document of a snapshot that may be published.
type published struct {
	Published
	source string
	id     string // of a workflow
}

// publish collects what may be published, from states in order of rank.
func (s *Snapshot) publish(states []state) {
	taken := map[string]string{} // ids of workflows by names
	for i := range states {
		source := &states[i]
		if source.info.Trust == TrustBundled {
			continue
		}
		for _, r := range source.records {
			if r.broken || r.content == nil {
				continue
			}
			p := published{Published: Published{Name: r.name, Sum: hex.EncodeToString(r.sum[:]), Size: r.size, open: r.content}, source: source.info.Name}
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
			s.shown = append(s.shown, p)
		}
	}
}

// reader gives the content of a document.
func (c *Catalog) reader(document Document) func() []byte {
	return func() []byte {
		data, _ := c.content(context.Background(), document) // whoever asks does without one that is gone
		return data
	}
}
