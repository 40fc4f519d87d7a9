package app

import (
	"context"
	"crypto/rand"
	"sync"

	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/platform/deployment"
	"github.com/guideway-dev/guideway/internal/store/keyfile"
	"github.com/guideway-dev/guideway/internal/store/postgres"
)

// sharedStates are the shared states of this process, by the URL of their store. They open at
// the first use.
type sharedStates struct {
	mu     sync.Mutex
	states map[string]*sharedState
}

// sharedState is the state in one store.
type sharedState struct {
	*deployment.Signed

	mu    sync.Mutex
	store *postgres.Store
}

// openStore returns the store after it was opened.
func (s *sharedState) openStore(ctx context.Context) (*postgres.Store, error) {
	if _, err := s.DeriveKey(ctx, ""); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.store, nil
}

// sharedConns is the maximum number of connections of a shared state.
const sharedConns = 4

// sharedState returns the state that all instances on the store share, or nil if the store is
// in files.
func (a *App) sharedState(cfg *config.Config) deployment.Shared {
	if !cfg.UsesPostgres() {
		return nil
	}
	if a.shared == nil {
		a.shared = &sharedStates{states: map[string]*sharedState{}}
	}
	a.shared.mu.Lock()
	defer a.shared.mu.Unlock()
	id := cfg.Store + "\x00" + cfg.Journal.KeyFile
	if a.shared.states[id] == nil {
		s := &sharedState{}
		s.Signed = &deployment.Signed{Open: func(ctx context.Context) (*deployment.Opened, error) { return a.openShared(ctx, cfg, s) }}
		a.shared.states[id] = s
	}
	return a.shared.states[id]
}

func (a *App) openShared(ctx context.Context, cfg *config.Config, s *sharedState) (*deployment.Opened, error) {
	if err := CheckRestored(cfg); err != nil {
		return nil, err
	}
	store, err := postgres.Open(ctx, postgres.Options{URL: cfg.Store, Logger: a.Logger(cfg), MaxConns: sharedConns})
	if err != nil {
		return nil, StoreOpenError(err)
	}
	key, err := OpenKey(ctx, cfg, store)
	if err != nil {
		_ = store.Close()
		return nil, StoreOpenError(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.store = store
	return &deployment.Opened{State: store.Shared(), Key: key}, nil
}

// StateKey returns a key for what clients send back to any instance. For a single instance, or
// while the key of the journal does not exist, the key is random.
func StateKey(cfg *config.Config, purpose string) ([]byte, error) {
	if cfg.Shared != nil && !isMissing(cfg.Journal.KeyFile) {
		key, _, err := keyfile.LoadOrCreate(cfg.Journal.KeyFile)
		return deployment.DeriveKey(key, purpose), err
	}
	key := make([]byte, 32)
	_, _ = rand.Read(key) // crypto/rand.Read never fails
	return key, nil
}

// Close closes the stores that the commands have opened.
func (a *App) Close() {
	if a.shared == nil {
		return
	}
	a.shared.mu.Lock()
	defer a.shared.mu.Unlock()
	for _, s := range a.shared.states {
		s.mu.Lock()
		if s.store != nil {
			_ = s.store.Close()
		}
		s.mu.Unlock()
	}
	clear(a.shared.states)
}
