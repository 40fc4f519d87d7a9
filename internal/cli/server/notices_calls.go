package server

import (
	"context"
	"fmt"
	"time"

	"github.com/guideway-dev/guideway/internal/gateway/holds"
	"github.com/guideway-dev/guideway/internal/notice"
)

// heldCallSource reads notices from the store of held calls. A position is the time of the
// last call in milliseconds.
type heldCallSource struct{ store *holds.Store }

var _ notice.Source = heldCallSource{}

// Name implements notice.Source.
func (heldCallSource) Name() string { return "calls" }

// Watch implements notice.Source. The store cannot be watched.
func (heldCallSource) Watch(context.Context) <-chan struct{} { return nil }

// Read implements notice.Source.
func (s heldCallSource) Read(_ context.Context, after int64) (list []notice.Notice, next int64, err error) {
	calls, err := s.store.WaitingSince(time.UnixMilli(after))
	for i := range calls {
		c := &calls[i]
		list = append(list, notice.Notice{
			ID: "n_" + c.ID, Type: notice.TypeCallHeld, At: c.Created, User: c.User, CallID: c.ID,
			Text:    fmt.Sprintf("%s waits for your approval to call the tool %s: %s", c.Client, c.Name, c.Reason),
			Command: "guideway calls show " + c.ID,
		})
		after = c.Created.UnixMilli()
	}
	return list, after, err
}
