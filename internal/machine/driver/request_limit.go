package driver

import (
	"context"
	"sync"
)

// requestLimit limits the concurrent requests to the models of each provider.
type requestLimit struct {
	most int // 0 means no limit

	mu        sync.Mutex
	providers map[string]chan struct{}
}

// acquire waits until another request to a provider may be sent. waiting is called before it
// waits.
func (l *requestLimit) acquire(ctx context.Context, provider string, waiting func() error) (release func(), err error) {
	if l.most == 0 {
		return func() {}, nil
	}
	l.mu.Lock()
	slots := l.providers[provider]
	if slots == nil {
		slots = make(chan struct{}, l.most)
		l.providers[provider] = slots
	}
	l.mu.Unlock()
	release = func() { <-slots }
	select {
	case slots <- struct{}{}:
		return release, nil
	default:
	}
	if err := waiting(); err != nil {
		return nil, err
	}
	select {
	case slots <- struct{}{}:
		return release, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
