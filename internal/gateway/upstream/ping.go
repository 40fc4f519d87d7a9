package upstream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/guideway-dev/guideway/internal/gateway/jsonrpc"
)

const (
	// pingTime is the timeout of a ping.
	pingTime = 10 * time.Second
	// maxMissed is the number of consecutive unanswered pings after which the session is
	// closed; the next call starts a new one.
	maxMissed = 3
)

// Pinged is the result of pings.
type Pinged struct {
	// At is the time of the last ping.
	At time.Time `json:"at"`
	// Took is the duration of the last ping in milliseconds; 0 if it was not answered.
	Took float64 `json:"ms"`
	// Missed is the number of consecutive unanswered pings.
	Missed int `json:"missed"`
}

// Ping pings a running server. asked is false if nothing was pinged: no session exists, or
// a session is in use and the timeouts of its calls apply.
func (u *Upstream) Ping(ctx context.Context) (asked bool, err error) {
	session, done := u.idleSession()
	if session == nil {
		return false, nil
	}
	defer done()
	ctx, cancel := context.WithTimeoutCause(ctx, pingTime, fmt.Errorf("the server did not answer a ping within %s", pingTime))
	defer cancel()
	method := "ping"
	if session.Modern() {
		method = "server/discover" // modern servers have no ping
	}
	began := time.Now()
	_, err = session.Do(ctx, Call{Method: method, Endless: true})
	if failure := (*jsonrpc.Error)(nil); errors.As(err, &failure) {
		err = nil // an error response answers the ping, too
	}
	if ctx.Err() != nil && errors.Is(context.Cause(ctx), context.Canceled) {
		return false, nil // this side has closed the session
	}
	if missed := u.recordPing(began, err); missed >= maxMissed {
		session.ended(fmt.Errorf("%d consecutive pings of the server failed: %w", missed, err))
		session.Close()
	}
	return true, err
}

// recordPing records a ping and returns the number of consecutive unanswered pings.
func (u *Upstream) recordPing(began time.Time, err error) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	p := Pinged{At: began, Took: float64(time.Since(began).Microseconds()) / 1000}
	if err != nil {
		p.Took = 0
		p.Missed = 1
		if u.pinged != nil {
			p.Missed += u.pinged.Missed
		}
	}
	u.pinged = &p
	if p.Missed >= maxMissed {
		u.pinged = nil // The last ping was in a session that is now closed.
	}
	return p.Missed
}

// idleSession acquires an unused session. It returns nil if there is no session, or if one
// is in use.
func (u *Upstream) idleSession() (*Session, func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	var found *slot
	for _, slots := range u.slots {
		for _, each := range slots {
			switch {
			case each.users > 0:
				return nil, nil
			case each.session != nil && !each.session.hasEnded():
				found = each
			}
		}
	}
	if found == nil || u.closed {
		return nil, nil
	}
	nobody := &Want{}
	u.addUser(found, nobody)
	return found.session, func() { u.giveBack(found, nobody) }
}
