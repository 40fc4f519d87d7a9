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

// Snapshots returns the current catalog.
type Snapshots interface{ Snapshot() *catalog.Snapshot }

// Handler serves a catalog as a registry, below the root: /index, /documents/{sum},
// /workflows, /workflows/summaries and /workflows/{id}. It is read-only and checks no
// credentials.
func Handler(from Snapshots) http.Handler {
	s := &server{from: from}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /index", s.serveIndex)
	mux.HandleFunc("GET /documents/{sum}", s.serveDocument)
	mux.HandleFunc("GET /workflows", s.serveWorkflows)
	mux.HandleFunc("GET /workflows/summaries", s.serveSummaries)
	mux.HandleFunc("GET /workflows/{id}", s.serveWorkflow)
	return mux
}

// server serves the current edition.
type server struct {
	from Snapshots

	mu   sync.Mutex
	last *edition
}

// edition is the registry's content of one snapshot.
type edition struct {
	snapshot  *catalog.Snapshot
	documents []catalog.Published
	bySum     map[string]*catalog.Published
	revision  string
	// entries are the workflows that are published.
	entries []*catalog.Entry
}

// currentEdition returns the edition of the current snapshot.
func (s *server) currentEdition() *edition {
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
		_, _ = sum.Write([]byte(d.Name + "\x00" + d.Sum + "\n")) // Write never returns an error
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

// isModified reports whether the client needs the edition. If the client has it, isModified
// answers 304.
func isModified(w http.ResponseWriter, r *http.Request, e *edition) bool {
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

func writeJSON(w http.ResponseWriter, status int, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		status, data = http.StatusInternalServerError, []byte(`{"error":"the response cannot be written"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(data) // an error means that the client has disconnected
}

func notFound(w http.ResponseWriter) {
	writeJSON(w, http.StatusNotFound, map[string]string{"error": "the document does not exist"})
}

// writeUnavailable answers that a document cannot be read at the moment.
func writeUnavailable(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "1")
	w.Header().Del("ETag")
	writeJSON(w, http.StatusServiceUnavailable, map[string]string{"error": "a document cannot be read at the moment"})
}

func (s *server) serveIndex(w http.ResponseWriter, r *http.Request) {
	e := s.currentEdition()
	if !isModified(w, r, e) {
		return
	}
	index := Index{Format: Format, Revision: e.revision, Documents: []Document{}}
	for _, d := range e.documents {
		index.Documents = append(index.Documents, Document{Name: d.Name, Size: d.Size, SHA256: d.Sum})
	}
	writeJSON(w, http.StatusOK, index)
}

func (s *server) serveDocument(w http.ResponseWriter, r *http.Request) {
	d := s.currentEdition().bySum[r.PathValue("sum")]
	if d == nil {
		notFound(w)
		return
	}
	data := d.Content()
	if data == nil {
		// The document has changed; the next index lists the new version.
		notFound(w)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Cache-Control", "private, max-age=31536000, immutable")
	_, _ = w.Write(data) // an error means that the client has disconnected
}

func (s *server) serveWorkflows(w http.ResponseWriter, r *http.Request) {
	e := s.currentEdition()
	if !isModified(w, r, e) {
		return
	}
	list := []json.RawMessage{}
	for _, entry := range e.entries {
		opened, err := entry.Open()
		if err != nil {
			// A list without this workflow would remove it from the clients' copies.
			writeUnavailable(w)
			return
		}
		list = append(list, json.RawMessage(opened.Definition.Canonical))
	}
	writeJSON(w, http.StatusOK, map[string]any{"workflows": list})
}

// summary is a workflow in a list.
type summary struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description"`
	Version     string `json:"version"`
	Hash        string `json:"hash"`
}

func (s *server) serveSummaries(w http.ResponseWriter, r *http.Request) {
	e := s.currentEdition()
	if !isModified(w, r, e) {
		return
	}
	list := []summary{}
	for _, entry := range e.entries {
		list = append(list, summary{ID: entry.ID, Name: entry.Name, Description: entry.Description, Version: entry.Version, Hash: entry.Hash})
	}
	writeJSON(w, http.StatusOK, map[string]any{"summaries": list})
}

func (s *server) serveWorkflow(w http.ResponseWriter, r *http.Request) {
	e := s.currentEdition()
	for _, entry := range e.entries {
		if entry.ID != r.PathValue("id") {
			continue
		}
		opened, err := entry.Open()
		if err != nil {
			writeUnavailable(w)
			return
		}
		writeJSON(w, http.StatusOK, json.RawMessage(opened.Definition.Canonical))
		return
	}
	notFound(w)
}
