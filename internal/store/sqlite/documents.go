package sqlite

import (
	"context"

	"github.com/guideway-dev/guideway/internal/session"
)

// PurgeDocument implements session.Documents.
func (s *Store) PurgeDocument(ctx context.Context, ref session.Ref) error {
	if err := s.methods.PurgeDocument(ctx, ref); err != nil {
		return err
	}
	return s.Compact(ctx)
}
