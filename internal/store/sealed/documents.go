package sealed

import (
	"context"
	"encoding/json"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/blob/seal"
	"github.com/guideway-dev/guideway/internal/session"
)

// refFields returns the fields that a ciphertext of a document is bound to.
func refFields(kind string, r session.Ref, revision int64) []string {
	return append([]string{kind, number(revision)}, refID(r)...)
}

func refID(r session.Ref) []string { return []string{r.User, r.Project, r.Workflow, r.ID} }

// documentKey returns the data key of a document.
func (s *Store) documentKey(ctx context.Context, r session.Ref, create bool) (*seal.Key, error) {
	key, err := s.keys.keyOf(ctx, create, "document", refID(r)...)
	if err != nil && !create {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "the session document %s is encrypted, and its key is not available: %w", r.ID, err).
			WithFix("%s", guideway.ErrorFix(err))
	}
	return key, err
}

// sealDocument returns the encrypted forms of a document and of the entries of its log.
func (s *Store) sealDocument(ctx context.Context, d session.Document, log []session.LogEntry) (session.Document, []session.LogEntry, error) {
	if !s.on {
		return d, log, nil
	}
	key, err := s.documentKey(ctx, d.Ref, true)
	if err != nil {
		return d, nil, err
	}
	d.Sealed = nil
	data, err := d.EncodeData()
	if err != nil {
		return d, nil, err
	}
	summary, err := d.Summary()
	if err != nil {
		return d, nil, err
	}
	d.Sealed = sealBytes(key, data, refFields("document", d.Ref, d.Revision)...)
	if summary.Dashboard != nil {
		d.SealedDashboard = sealBytes(key, summary.Dashboard, refFields("dashboard", d.Ref, d.Revision)...)
	}
	entries := make([]session.LogEntry, len(log))
	for i, e := range log {
		e.Pointer = sealText(key, e.Pointer, refFields("pointer", d.Ref, e.Revision)...)
		e.Message = sealText(key, e.Message, refFields("message", d.Ref, e.Revision)...)
		entries[i] = e
	}
	return d, entries, nil
}

// OpenDocument decrypts a document in place.
func (s *Store) OpenDocument(ctx context.Context, d *session.Document) error {
	if d.Sealed == nil {
		return nil
	}
	key, err := s.documentKey(ctx, d.Ref, false)
	if err != nil {
		return err
	}
	data, err := openBytes(key, d.Sealed, refFields("document", d.Ref, d.Revision)...)
	if err != nil {
		s.keys.forget(keyName("document", refID(d.Ref)...)) // another process may have replaced the document and its key
		return err
	}
	d.Sealed = nil
	if d.Data, err = session.DecodeData(data); err != nil {
		return guideway.Errorf(guideway.CodeUnavailable, "the session document %s is not JSON: %w", d.ID, err)
	}
	return nil
}

// CreateDocument implements session.Documents.
func (s *Store) CreateDocument(ctx context.Context, d session.Document, log []session.LogEntry) error {
	s.keys.forget(keyName("document", refID(d.Ref)...)) // an erased document with the same reference had another key
	d.Revision = 1
	d, log, err := s.sealDocument(ctx, d, log)
	if err != nil {
		return err
	}
	return s.Journal.CreateDocument(ctx, d, log)
}

// UpdateDocument implements session.Documents.
func (s *Store) UpdateDocument(
	ctx context.Context, ref session.Ref, change func(session.Document) (session.Document, []session.LogEntry, error),
) (session.Document, error) {
	var plain map[string]any
	stored, err := s.Journal.UpdateDocument(ctx, ref, func(before session.Document) (session.Document, []session.LogEntry, error) {
		if err := s.OpenDocument(ctx, &before); err != nil {
			return before, nil, err
		}
		key, revision := before.Ref, before.Revision
		next, log, err := change(before)
		if err != nil {
			return next, log, err
		}
		next.Ref, next.Revision, plain = key, revision+1, next.Data
		return s.sealDocument(ctx, next, log)
	})
	if stored.Sealed != nil {
		stored.Data, stored.Sealed, stored.SealedDashboard = plain, nil, nil
	}
	return stored, err
}

// PurgeDocument implements session.Documents. It also destroys the key, so that copies of the
// document are unreadable.
func (s *Store) PurgeDocument(ctx context.Context, ref session.Ref) error {
	if err := s.Journal.PurgeDocument(ctx, ref); err != nil || !s.on {
		return err
	}
	return s.keys.erase(ctx, keyName("document", refID(ref)...))
}

// Documents implements session.Finder.
func (s *Store) Documents(ctx context.Context, f session.Filter) ([]session.Document, error) {
	list, err := s.Journal.Documents(ctx, f)
	for i := range list {
		if err := s.OpenDocument(ctx, &list[i]); err != nil {
			return nil, err
		}
	}
	return list, err
}

// Summaries implements session.Finder. A document whose key is missing has no dashboard.
func (s *Store) Summaries(ctx context.Context, f session.Filter) ([]session.Summary, error) {
	list, err := s.Journal.Summaries(ctx, f)
	for i, d := range list {
		if !isSealed(d.Dashboard) {
			continue
		}
		list[i].Dashboard = nil
		key, err := s.documentKey(ctx, d.Ref, false)
		if err != nil {
			continue
		}
		if text, err := openBytes(key, d.Dashboard, refFields("dashboard", d.Ref, d.Revision)...); err == nil {
			list[i].Dashboard = json.RawMessage(text)
		}
	}
	return list, err
}

// ValidationLog implements session.Finder.
func (s *Store) ValidationLog(ctx context.Context, ref session.Ref, limit int) ([]session.LogEntry, error) {
	list, err := s.Journal.ValidationLog(ctx, ref, limit)
	if err != nil || len(list) == 0 {
		return list, err
	}
	key, missing := s.documentKey(ctx, ref, false)
	for i := range list {
		e := &list[i]
		openText(key, missing, &e.Pointer, refFields("pointer", ref, e.Revision)...)
		openText(key, missing, &e.Message, refFields("message", ref, e.Revision)...)
	}
	return list, nil
}
