package registry

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strings"
	"sync"

	"github.com/guideway-dev/guideway/internal/catalog"
)

// Snapshots gives the catalog of the moment.
type Snapshots interface{ Snapshot() *catalog.Snapshot }

// Handler serves a catalog as a registry, below the root: /index, /documents/{sum},
// /workflows, /workflows/summaries and /workflows/{id}. It reads alone, and is to be
// guarded by whoever mounts it.
func Handler(from Snapshots) http.Handler {
	s := &shelf{from: from}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /index", s.index)
	mux.HandleFunc("GET /documents/{sum}", s.document)
	mux.HandleFunc("GET /workflows", s.workflows)
	mux.HandleFunc("GET /workflows/summaries", s.summaries)
	mux.HandleFunc("GET /workflows/{id}", s.workflow)
	return mux
}

// shelf is what is served.
type shelf struct {
	from Snapshots

	mu   sync.Mutex
	last *edition
}

// edition is what one snapshot gives to a registry.
type edition struct {
	snapshot  *catalog.Snapshot
	documents []catalog.Published
	bySum     map[string]*catalog.Published
	revision  string
	// entries are the workflows that are published.
	entries []*catalog.Entry
}

// edition gives that of the moment.
func (s *shelf) edition() *edition {
	snapshot := s.from.Snapshot()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last != nil && s.last.snapshot == snapshot {
		return s.last
	}
	e := &edition{snapshot: snapshot, documents: snapshot.Published(), bySum: map[string]*catalog.Published{}}
	sum := sha256.New()
	for i := range e.documents {
		d := &e.documents[i]
		e.bySum[d.Sum] = d
		_, _ = sum.Write([]byte(d.Name + "\x00" + d.Sum + "\n")) // it never fails
	}
	e.revision = "r-" + hex.EncodeToString(sum.Sum(nil))[:16]
	for _, entry := range snapshot.List(catalog.Filter{}) {
		if entry.Source.Trust != catalog.TrustBundled {
			e.entries = append(e.entries, entry)
		}
	}
	s.last = e
	return e
}

// fresh answers that nothing has changed, if that is so.
func fresh(w http.ResponseWriter, r *http.Request, e *edition) bool {
	tag := `"` + e.revision + `"`
	w.Header().Set("ETag", tag)
	w.Header().Set("Cache-Control", "private, no-cache")
	for given := range strings.SplitSeq(r.Header.Get("If-None-Match"), ",") {
		if given = strings.TrimSpace(given); given == tag || given == "*" || given == "W/"+tag {
			w.WriteHeader(http.StatusNotModified)
			return false
		}
	}
	return true
}

func write(w http.ResponseWriter, status int, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		status, data = http.StatusInternalServerError, []byte(`{"error":"the answer cannot be written"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(data) // the client has gone
}

func notFound(w http.ResponseWriter) {
	write(w, http.StatusNotFound, map[string]string{"error": "there is no such document"})
}

// unavailable answers where a document cannot be read just now.
func unavailable(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "1")
	w.Header().Del("ETag")
	write(w, http.StatusServiceUnavailable, map[string]string{"error": "a document could not be read just now"})
}

func (s *shelf) index(w http.ResponseWriter, r *http.Request) {
	e := s.edition()
	if !fresh(w, r, e) {
		return
	}
	index := Index{Format: Format, Revision: e.revision, Documents: []Document{}}
	for _, d := range e.documents {
		index.Documents = append(index.Documents, Document{Name: d.Name, Size: d.Size, SHA256: d.Sum})
	}
	write(w, http.StatusOK, index)
}

func (s *shelf) document(w http.ResponseWriter, r *http.Request) {
	d := s.edition().bySum[r.PathValue("sum")]
	if d == nil {
		notFound(w)
		return
	}
	data := d.Content()
	if data == nil {
		// It was changed since; the next index has the new one.
		notFound(w)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Cache-Control", "private, max-age=31536000, immutable")
	_, _ = w.Write(data) // the client has gone
}

func (s *shelf) workflows(w http.ResponseWriter, r *http.Request) {
	e := s.edition()
	if !fresh(w, r, e) {
		return
	}
	list := []json.RawMessage{}
	for _, entry := range e.entries {
		opened, err := entry.Open()
		if err != nil {
			// A list without it would take it away from those who follow.
			unavailable(w)
			return
		}
		list = append(list, json.RawMessage(opened.Definition.Canonical))
	}
	write(w, http.StatusOK, map[string]any{"workflows": list})
}

// summary is a workflow in a list.
type summary struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description"`
	Version     string `json:"version"`
	Hash        string `json:"hash"`
}

func (s *shelf) summaries(w http.ResponseWriter, r *http.Request) {
	e := s.edition()
	if !fresh(w, r, e) {
		return
	}
	list := []summary{}
	for _, entry := range e.entries {
		list = append(list, summary{ID: entry.ID, Name: entry.Name, Description: entry.Description, Version: entry.Version, Hash: entry.Hash})
	}
	write(w, http.StatusOK, map[string]any{"summaries": list})
}

func (s *shelf) workflow(w http.ResponseWriter, r *http.Request) {
	e := s.edition()
	for _, entry := range e.entries {
		if entry.ID != r.PathValue("id") {
			continue
		}
		opened, err := entry.Open()
		if err != nil {
			unavailable(w)
			return
		}
		write(w, http.StatusOK, json.RawMessage(opened.Definition.Canonical))
		return
	}
	notFound(w)
}
