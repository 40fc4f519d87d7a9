package server

import (
	"context"
	"fmt"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/gateway/holds"
	"github.com/guideway-dev/guideway/internal/notice"
)

// startNotices starts the delivery of notices, or returns nil if there are no receivers. It
// reads the journals in the background, so that no call waits for it. The command of a client's
// process notifies the person at that computer, so that it is not shared.
func startNotices(s *Surface, ofClient bool) *notice.Sender {
	log := s.app.Logger(s.cfg)
	var receivers []notice.Receiver
	for _, name := range app.NoticeReceivers(s.cfg) {
		r, err := s.app.NoticeReceiver(s.cfg, name)
		if err != nil {
			log.Error("a receiver of notices is not used", "receiver", name, "error", err, "fix", guideway.ErrorFix(err))
			continue
		}
		r.Shared = r.URL != "" || !ofClient
		receivers = append(receivers, r)
	}
	if len(receivers) == 0 {
		return nil
	}
	return notice.Start(notice.Options{
		Receivers: receivers, Dir: app.NoticesDir(s.cfg), Texts: app.SealFiles(s.cfg), Log: log, Shared: s.cfg.Shared,
		Sources: []notice.Source{
			&notice.JournalSource{SourceName: "runs", Describe: notice.DescribeRun, Open: s.openRunFeed},
			&notice.JournalSource{SourceName: "machines", Describe: notice.DescribeMachineRun, Open: s.Machines.openFeed},
			heldCallSource{s.app.OpenHolds(s.cfg)},
		},
		Address: func(ctx context.Context) string { return FindServerURL(ctx, s.cfg) },
	})
}

// openRunFeed returns the journal of runs, or nil if none exists yet.
func (s *Surface) openRunFeed(ctx context.Context) (notice.Journal, error) {
	if !app.HasStore(s.cfg) {
		return nil, nil //nolint:nilnil // no journal is not an error
	}
	opened, err := s.store.Open(ctx)
	if err != nil {
		return nil, err
	}
	return opened.JournalStore, nil
}

// openFeed returns the journal of machine runs, or nil if none exists yet.
func (l *lazyMachines) openFeed(ctx context.Context) (notice.Journal, error) {
	if !app.HasStore(MachineConfig(l.cfg)) {
		return nil, nil //nolint:nilnil // no journal is not an error
	}
	if _, err := l.openService(ctx); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.store == nil {
		return nil, context.Canceled
	}
	return l.store.journal, nil
}

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
