package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/guideway-dev/guideway/internal/gateway/jsonrpc"
	"github.com/guideway-dev/guideway/internal/platform/atomicfile"
)

// Catalog is what a server offers. The entries are as the server has written
// them, each an object with its name or address.
type Catalog struct {
	// SpecHash says which server it was.
	SpecHash string    `json:"spec"`
	Fetched  time.Time `json:"fetchedAt"`
	Info     Info      `json:"info"`

	Tools     []json.RawMessage `json:"tools,omitempty"`
	Prompts   []json.RawMessage `json:"prompts,omitempty"`
	Resources []json.RawMessage `json:"resources,omitempty"`
	Templates []json.RawMessage `json:"resourceTemplates,omitempty"`

	// Notes say what was left out and why.
	Notes []string `json:"notes,omitempty"`
}

// The bounds of a catalog.
const (
	maxPages     = 64
	maxEntries   = 2000
	maxListBytes = 8 << 20
	maxEntry     = 256 << 10
	// maxEntryDepth leaves room for what entries are wrapped in: clients that cannot
	// read one of them read none.
	maxEntryDepth = 200
	// listTime bounds the fetching of all lists.
	listTime = 20 * time.Second
)

// list is one of the lists of a server.
type list struct {
	method, member, id string
	into               *[]json.RawMessage
}

// fetch asks a server for all that it offers.
func fetch(ctx context.Context, s *Session) (*Catalog, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, listTime, fmt.Errorf("the lists have taken longer than %s", listTime))
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
	for _, l := range lists {
		err := c.fetchList(ctx, s, l)
		var failure *jsonrpc.Error
		if errors.As(err, &failure) && failure.Code == jsonrpc.CodeMethodNotFound {
			continue // it says that it can, and cannot
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", l.method, err)
		}
	}
	return c, nil
}

// merge adds what another session of the server offers besides.
func (c *Catalog) merge(o *Catalog) {
	for _, l := range []struct {
		id   string
		into *[]json.RawMessage
		from []json.RawMessage
	}{
		{"name", &c.Tools, o.Tools}, {"name", &c.Prompts, o.Prompts}, {"uri", &c.Resources, o.Resources}, {"uriTemplate", &c.Templates, o.Templates},
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

// idOf is the text of a member of an entry that was taken.
func idOf(entry json.RawMessage, member string) string {
	members, err := jsonrpc.Members(entry, member)
	if err != nil {
		return ""
	}
	var id string
	_ = json.Unmarshal(members[member], &id) // entries that were taken have one
	return id
}

// fetchList follows the pages of a list, to a bound: a list may have no end.
func (c *Catalog) fetchList(ctx context.Context, s *Session, l list) error {
	var cursor json.RawMessage
	seen, size := map[string]bool{}, 0
	for page := 0; ; page++ {
		call := Call{Method: l.method}
		if cursor != nil {
			call.Members = []jsonrpc.Member{{Key: "cursor", Value: cursor}}
		}
		result, err := s.Do(ctx, call)
		if err != nil {
			return err
		}
		members, err := jsonrpc.Members(result, l.member, "nextCursor")
		if err != nil {
			return fmt.Errorf("the answer cannot be used: %w", err)
		}
		var entries []json.RawMessage
		if members[l.member] != nil {
			if err := json.Unmarshal(members[l.member], &entries); err != nil {
				return errors.New("the answer has no list")
			}
		}
		for _, entry := range entries {
			size += len(entry)
			c.add(l, entry, seen)
		}
		next := members["nextCursor"]
		switch {
		case next == nil || string(next) == "null" || string(next) == `""`:
			return nil
		case page+1 >= maxPages || len(*l.into) >= maxEntries || size >= maxListBytes:
			c.note("the list %s has no end within %d pages, %d entries and %d bytes; what came after that is left out", l.member, maxPages, maxEntries, maxListBytes)
			return nil
		case seen["cursor "+string(next)]:
			c.note("the list %s comes back to the same page; what came after that is left out", l.member)
			return nil
		case next[0] != '"' || len(next) > 4<<10:
			c.note("the list %s has a cursor that cannot be used; what came after that is left out", l.member)
			return nil
		}
		seen["cursor "+string(next)] = true
		cursor = append(json.RawMessage(nil), next...)
	}
}

// add takes an entry that has a name and is not there yet.
func (c *Catalog) add(l list, entry json.RawMessage, seen map[string]bool) {
	if len(*l.into) >= maxEntries {
		return
	}
	members, err := jsonrpc.Members(entry, l.id, "description", "inputSchema", "outputSchema", "annotations", "title")
	if err != nil {
		c.note("an entry of %s is left out: %v", l.member, err)
		return
	}
	var id string
	if json.Unmarshal(members[l.id], &id) != nil || id == "" || len(id) > 2<<10 {
		c.note("an entry of %s is left out: it has no usable %s", l.member, l.id)
		return
	}
	if seen["id "+id] {
		c.note("%s of %s is there twice; the first one counts", quoted(id), l.member)
		return
	}
	if len(entry) > maxEntry {
		c.note("%s of %s is left out: it is larger than %d bytes", quoted(id), l.member, maxEntry)
		return
	}
	if !jsonrpc.Within(entry, maxEntryDepth) {
		c.note("%s of %s is left out: it is nested deeper than %d levels", quoted(id), l.member, maxEntryDepth)
		return
	}
	if schema := members["inputSchema"]; l.member == "tools" && (schema == nil || schema[0] != '{') {
		c.note("the tool %s is left out: it has no input schema", quoted(id))
		return
	}
	seen["id "+id] = true
	*l.into = append(*l.into, append(json.RawMessage(nil), entry...))
}

// maxNotes bounds what is said of one server.
const maxNotes = 20

func (c *Catalog) note(format string, args ...any) {
	if len(c.Notes) < maxNotes {
		c.Notes = append(c.Notes, fmt.Sprintf(format, args...))
	}
}

func quoted(id string) string { return fmt.Sprintf("%q", clip(plainText(id), 80)) }

// cachePath is where a catalog is kept from one start to the next.
func cachePath(dir, name string) string { return filepath.Join(dir, name+".json") }

// maxCache bounds what is read of a cached catalog.
const maxCache = 64 << 20

// loadCatalog reads the catalog of an earlier time; nil where there is none for
// this server. It may be thrown away, so nothing is wrong with one that cannot
// be read.
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

// save keeps a catalog for the next start.
func (c *Catalog) save(dir string, spec Spec) error {
	if dir == "" {
		return nil
	}
	text, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("write the catalog: %w", err)
	}
	return atomicfile.Replace(cachePath(dir, spec.Name), string(text)+"\n")
}

// Forget removes what is kept of a server.
func Forget(dir, name string) error {
	if err := CheckName(name); err != nil {
		return err
	}
	if err := os.Remove(cachePath(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("forget the upstream: %w", err)
	}
	return nil
}

// Cached gives the catalog that an earlier process has kept, or nil.
func Cached(dir string, spec Spec) *Catalog { return loadCatalog(dir, spec) }
