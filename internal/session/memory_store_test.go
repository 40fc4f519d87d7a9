package session

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/guideway-dev/guideway"
)

// memoryStore is a Store for tests. Like a store that retries, it calls every change twice.
// It stores documents as JSON, so that callers never share a value.
type memoryStore struct {
	mu      sync.Mutex
	kept    map[Ref]storedDocument
	failing error
}

type storedDocument struct {
	text    []byte
	deleted bool
	log     []LogEntry
}

var _ Store = (*memoryStore)(nil)

func newMemory() *memoryStore { return &memoryStore{kept: map[Ref]storedDocument{}} }

func (m *memoryStore) loadDocument(ref Ref) (Document, error) {
	kept, ok := m.kept[ref]
	if !ok || kept.deleted {
		return Document{}, guideway.Errorf(guideway.CodeNotFound, "no such document")
	}
	decoder := json.NewDecoder(bytes.NewReader(kept.text))
	decoder.UseNumber()
	var d Document
	if err := decoder.Decode(&d); err != nil {
		return Document{}, err
	}
	d.Ref = ref
	return d, nil
}

func (m *memoryStore) saveDocument(d Document, log []LogEntry) error {
	text, err := json.Marshal(d)
	if err != nil {
		return err
	}
	m.kept[d.Ref] = storedDocument{text: text, log: append(m.kept[d.Ref].log, log...)}
	return nil
}

func (m *memoryStore) CreateDocument(_ context.Context, d Document, log []LogEntry) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.failing != nil {
		return m.failing
	}
	if kept, ok := m.kept[d.Ref]; ok && !kept.deleted {
		return guideway.Errorf(guideway.CodeConflict, "document exists")
	}
	delete(m.kept, d.Ref)
	return m.saveDocument(d, log)
}

func (m *memoryStore) UpdateDocument(_ context.Context, ref Ref, change func(Document) (Document, []LogEntry, error)) (Document, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.failing != nil {
		return Document{}, m.failing
	}
	var next Document
	var log []LogEntry
	for range 2 {
		d, err := m.loadDocument(ref)
		if err != nil {
			return Document{}, err
		}
		if next, log, err = change(d); err != nil {
			return Document{}, err
		}
	}
	return next, m.saveDocument(next, log)
}

func (m *memoryStore) markDeleted(ref Ref, deleted bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	kept, ok := m.kept[ref]
	if !ok || kept.deleted == deleted {
		return guideway.Errorf(guideway.CodeNotFound, "no such document")
	}
	kept.deleted = deleted
	m.kept[ref] = kept
	return nil
}

func (m *memoryStore) DeleteDocument(_ context.Context, ref Ref, _ time.Time) error {
	return m.markDeleted(ref, true)
}

func (m *memoryStore) RestoreDocument(_ context.Context, ref Ref, _ time.Time) error {
	return m.markDeleted(ref, false)
}

func (m *memoryStore) PurgeDocument(_ context.Context, ref Ref) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if kept, ok := m.kept[ref]; !ok || !kept.deleted {
		return guideway.Errorf(guideway.CodeNotFound, "no such document")
	}
	delete(m.kept, ref)
	return nil
}

func (m *memoryStore) Documents(_ context.Context, f Filter) ([]Document, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.failing != nil {
		return nil, m.failing
	}
	fits := func(want, is string) bool { return want == "" || want == is }
	var list []Document
	for ref := range m.kept {
		if ref.User != f.Ref.User || !fits(f.Ref.Project, ref.Project) || !fits(f.Ref.Workflow, ref.Workflow) || !fits(f.Ref.ID, ref.ID) {
			continue
		}
		if d, err := m.loadDocument(ref); err == nil {
			list = append(list, d)
		}
	}
	slices.SortFunc(list, func(a, b Document) int {
		return cmp.Or(b.Updated.Compare(a.Updated), cmp.Compare(a.URI(), b.URI()))
	})
	return list[:min(len(list), cmp.Or(f.Limit, 1000))], nil
}

func (m *memoryStore) Summaries(ctx context.Context, f Filter) ([]Summary, error) {
	list, err := m.Documents(ctx, f)
	summaries := make([]Summary, len(list))
	for i, d := range list {
		if summaries[i], err = d.Summary(); err != nil {
			return nil, err
		}
	}
	return summaries, err
}

func (m *memoryStore) Projects(ctx context.Context, user string) ([]ProjectSummary, error) {
	list, err := m.Documents(ctx, Filter{Ref: Ref{User: user}})
	if err != nil {
		return nil, err
	}
	var projects []ProjectSummary
	for _, d := range list {
		at := slices.IndexFunc(projects, func(p ProjectSummary) bool { return p.ID == d.Project })
		if at < 0 {
			at = len(projects)
			projects = append(projects, ProjectSummary{ID: d.Project, Path: d.ProjectPath, Updated: d.Updated})
		}
		projects[at].Sessions++
	}
	return projects, nil
}

func (m *memoryStore) ValidationLog(_ context.Context, ref Ref, limit int) ([]LogEntry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, err := m.loadDocument(ref); err != nil {
		return nil, err
	}
	log := slices.Clone(m.kept[ref].log)
	slices.Reverse(log)
	return log[:min(len(log), limit)], nil
}
