package cli

import (
	"context"
	"errors"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/cli/app"
)

// TestWaitingForStoreIsCancellable checks that a call that waits while another call opens
// the store can be cancelled. The next call opens the store.
func TestWaitingForStoreIsCancellable(t *testing.T) {
	t.Parallel()
	host, _ := newTerminal(t, nil)
	root := &app.App{Host: &host, Flags: &app.SettingFlags{}}
	cfg, err := root.Load()
	if err != nil {
		t.Fatal(err)
	}
	s := root.NewStore(cfg, nil)
	defer s.Close()
	s.Lock <- struct{}{} // simulates another call that is opening the store
	ctx, giveUp := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := s.Open(ctx)
		done <- err
	}()
	giveUp()
	if err := <-done; !errors.Is(err, context.Canceled) || guideway.ErrorCode(err) != guideway.CodeUnavailable {
		t.Errorf("the cancelled call returned %v (%s)", err, guideway.ErrorCode(err))
	}
	<-s.Lock
	if _, err := s.Open(t.Context()); err != nil {
		t.Errorf("the next call returned %v", err)
	}
}
