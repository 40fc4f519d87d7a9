package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/guideway-dev/guideway/internal/gateway/jsonrpc"
	"github.com/guideway-dev/guideway/internal/platform/atomicfile"
	"github.com/guideway-dev/guideway/internal/platform/jsontext"
	"github.com/guideway-dev/guideway/internal/platform/textpart"
)

// Catalog holds the lists of a server. The entries are unchanged objects of the server,
// each with a name or URI.
type Catalog struct {
	// SpecHash identifies the server's spec.
	SpecHash string    `json:"spec"`
	Fetched  time.Time `json:"fetchedAt"`
	Info     Info      `json:"info"`

	Tools     []json.RawMessage `json:"tools,omitempty"`
	Prompts   []json.RawMessage `json:"prompts,omitempty"`
	Resources []json.RawMessage `json:"resources,omitempty"`
	Templates []json.RawMessage `json:"resourceTemplates,omitempty"`
	Skills    []json.RawMessage `json:"skills,omitempty"`

	// Notes are warnings about omitted entries.
	Notes []string `json:"notes,omitempty"`
}

// Limits of a catalog.
const (
	maxPages     = 64
	maxEntries   = 2000
	maxListBytes = 8 << 20
	maxEntry     = 256 << 10
	// maxEntryDepth is lower than the maximum depth of messages, because lists wrap
	// entries, and a client that cannot parse one entry cannot parse the list.
	maxEntryDepth = 200
	// listTime is the maximum time to fetch all lists.
	listTime = 20 * time.Second
)

// list is one of the lists of a server.
type list struct {
	method, member, id string
	into               *[]json.RawMessage
}

// fetchCatalog fetches all lists of a server.
func fetchCatalog(ctx context.Context, s *Session) (*Catalog, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, listTime, fmt.Errorf("the server did not send its lists within %s", listTime))
	defer cancel()
	c := &Catalog{SpecHash: s.opts.spec.Hash(), Fetched: time.Now(), Info: s.Info()}
	var lists []list
	if c.Info.Capabilities.Tools != nil {
		lists = append(lists, list{"tools/list", "tools", "name", &c.Tools})
	}
	if c.Info.Capabilities.Prompts != nil {
		lists = append(lists, list{"prompts/list", "prompts", "name", &c.Prompts})
	}
	if c.Info.Capabilities.Resources != nil {
		lists = append(lists, list{"resources/list", "resources", "uri", &c.Resources},
			list{"resources/templates/list", "resourceTemplates", "uriTemplate", &c.Templates})
	}
	if c.Info.Capabilities.Extensions.Has(ExtensionSkills) {
		lists = append(lists, list{"skills/list", "skills", "uri", &c.Skills})
	}
	for _, l := range lists {
		err := c.fetchList(ctx, s, l)
		var failure *jsonrpc.Error
		if errors.As(err, &failure) && failure.Code == jsonrpc.CodeMethodNotFound {
			continue // the list is declared but not implemented
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", l.method, err)
		}
	}
	return c, nil
}

// Clone returns a copy that Merge may change.
func (c *Catalog) Clone() *Catalog {
	copied := *c
	for _, l := range []*[]json.RawMessage{&copied.Tools, &copied.Prompts, &copied.Resources, &copied.Templates, &copied.Skills} {
		*l = slices.Clone(*l)
	}
	return &copied
}

// Merge adds to c the entries of o, the catalog of another session, that c does not have.
func (c *Catalog) Merge(o *Catalog) {
	for _, l := range []struct {
		id   string
		into *[]json.RawMessage
		from []json.RawMessage
	}{
		{"name", &c.Tools, o.Tools},
		{"name", &c.Prompts, o.Prompts},
		{"uri", &c.Resources, o.Resources},
		{"uriTemplate", &c.Templates, o.Templates},
		{"uri", &c.Skills, o.Skills},
	} {
		ids := map[string]bool{}
		for _, entry := range *l.into {
			ids[idOf(entry, l.id)] = true
		}
		for _, entry := range l.from {
			if !ids[idOf(entry, l.id)] && len(*l.into) < maxEntries {
				*l.into = append(*l.into, entry)
			}
		}
	}
}

// idOf returns a text member of a valid entry.
func idOf(entry json.RawMessage, member string) string {
	members, err := jsonrpc.Members(entry, member)
	if err != nil {
		return ""
	}
	var id string
	_ = json.Unmarshal(members[member], &id) // valid entries have this member
	return id
}

// fetchList fetches the pages of a list up to the limits, because a list may be endless.
func (c *Catalog) fetchList(ctx context.Context, s *Session, l list) error {
	var cursor json.RawMessage
	seen, size := map[string]bool{}, 0
	for page := 0; ; page++ {
		call := Call{Method: l.method, Capabilities: json.RawMessage(listCapabilities)}
		if cursor != nil {
			call.Members = []jsonrpc.Member{{Key: "cursor", Value: cursor}}
		}
		result, err := s.Do(ctx, call)
		if err != nil {
			return err
		}
		members, err := jsonrpc.Members(result, l.member, "nextCursor")
		if err != nil {
			return fmt.Errorf("the answer with the list %s is invalid: %w", l.member, err)
		}
		var entries []json.RawMessage
		if members[l.member] != nil {
			if err := json.Unmarshal(members[l.member], &entries); err != nil {
				return fmt.Errorf("the member %q of the answer is not a list", l.member)
			}
		}
		for _, entry := range entries {
			if len(*l.into) >= maxEntries {
				c.addNote("the list %s exceeds %d entries; the rest is omitted", l.member, maxEntries)
				return nil
			}
			size += len(entry)
			c.addEntry(l, entry, seen)
		}
		next := members["nextCursor"]
		switch {
		case next == nil || string(next) == "null" || string(next) == `""`:
			return nil
		case page+1 >= maxPages || len(*l.into) >= maxEntries || size >= maxListBytes:
			c.addNote("the list %s exceeds %d pages, %d entries or %d bytes; the rest is omitted", l.member, maxPages, maxEntries, maxListBytes)
			return nil
		case seen["cursor "+string(next)]:
			c.addNote("the list %s repeats a page; the rest is omitted", l.member)
			return nil
		case next[0] != '"' || len(next) > 4<<10:
			c.addNote("the list %s has an invalid cursor; the rest is omitted", l.member)
			return nil
		}
		seen["cursor "+string(next)] = true
		cursor = append(json.RawMessage(nil), next...)
	}
}

// addEntry adds an entry if it is valid and its name is new.
func (c *Catalog) addEntry(l list, entry json.RawMessage, seen map[string]bool) {
	members, err := jsonrpc.Members(entry, l.id, "description", "inputSchema", "outputSchema", "annotations", "title")
	if err != nil {
		c.addNote("an entry of the list %s is omitted: %v", l.member, err)
		return
	}
	var id string
	schema := members["inputSchema"]
	switch {
	case json.Unmarshal(members[l.id], &id) != nil || id == "" || len(id) > 2<<10:
		c.addNote("an entry of the list %s is omitted: its %s must be a string of 1 to %d bytes", l.member, l.id, 2<<10)
	case seen["id "+id]:
		c.addNote("a second entry %s of the list %s is omitted", quoteID(id), l.member)
	case len(entry) > maxEntry:
		c.addNote("the entry %s of the list %s is omitted: it is larger than %d bytes", quoteID(id), l.member, maxEntry)
	case !jsontext.Within(entry, maxEntryDepth):
		c.addNote("the entry %s of the list %s is omitted: it is nested deeper than %d levels", quoteID(id), l.member, maxEntryDepth)
	case l.member == "tools" && (schema == nil || schema[0] != '{'):
		c.addNote("the tool %s is omitted: its inputSchema is missing or not an object", quoteID(id))
	default:
		seen["id "+id] = true
		*l.into = append(*l.into, append(json.RawMessage(nil), entry...))
	}
}

// maxNotes is the maximum number of warnings about a server.
const maxNotes = 20

func (c *Catalog) addNote(format string, args ...any) {
	if len(c.Notes) < maxNotes {
		c.Notes = append(c.Notes, fmt.Sprintf(format, args...))
	}
}

func quoteID(id string) string { return fmt.Sprintf("%q", textpart.Clip(plainText(id), 80)) }

// cachePath returns the file that caches a catalog between starts.
func cachePath(dir, name string) string { return filepath.Join(dir, name+".json") }

// maxCache is the maximum size of a cached catalog.
const maxCache = 64 << 20

// loadCatalog reads the cached catalog, or nil if this spec has none. It ignores
// unreadable files, because the cache may be deleted at any time.
func loadCatalog(dir string, spec Spec) *Catalog {
	if dir == "" {
		return nil
	}
	info, err := os.Stat(cachePath(dir, spec.Name))
	if err != nil || info.Size() > maxCache || !info.Mode().IsRegular() {
		return nil
	}
	text, err := os.ReadFile(cachePath(dir, spec.Name))
	if err != nil {
		return nil
	}
	var c Catalog
	if json.Unmarshal(text, &c) != nil || c.SpecHash != spec.Hash() {
		return nil
	}
	return &c
}

// save caches a catalog for the next start.
func (c *Catalog) save(dir string, spec Spec) error {
	if dir == "" {
		return nil
	}
	text, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("encode the catalog: %w", err)
	}
	return atomicfile.Replace(cachePath(dir, spec.Name), string(text)+"\n")
}

// Forget removes the cache of a server.
func Forget(dir, name string) error {
	if err := CheckName(name); err != nil {
		return err
	}
	if err := os.Remove(cachePath(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("forget the cached catalog: %w", err)
	}
	return nil
}

// Cached returns the cached catalog of a spec, or nil.
func Cached(dir string, spec Spec) *Catalog { return loadCatalog(dir, spec) }
