package upstream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/guideway-dev/guideway/internal/gateway/jsonrpc"
)

const (
	// pingTime is how long an answer to a ping may take.
	pingTime = 10 * time.Second
	// maxMissed is how many pings in a row may stay without an answer; then the
	// session is ended, and the next call begins a new one.
	maxMissed = 3
)

// Pinged is what pings have found.
type Pinged struct {
	// At is when the last ping was sent.
	At time.Time `json:"at"`
	// Took is how long the last answer took, in milliseconds.
	Took float64 `json:"ms"`
	// Missed counts the pings in a row that had no answer.
	Missed int `json:"missed"`
}

// Ping asks a server that runs whether it is there; it starts none. asked is false
// where there was nobody to ask: nothing runs, or what runs is at work, which the
// time limits of its calls watch over.
func (u *Upstream) Ping(ctx context.Context) (asked bool, err error) {
	session, done := u.idleSession()
	if session == nil {
		return false, nil
	}
	defer done()
	ctx, cancel := context.WithTimeoutCause(ctx, pingTime, errors.New("it has not answered a ping"))
	defer cancel()
	method := "ping"
	if session.Modern() {
		method = "server/discover" // it has no ping
	}
	began := time.Now()
	_, err = session.Do(ctx, Call{Method: method, Endless: true})
	if failure := (*jsonrpc.Error)(nil); errors.As(err, &failure) {
		err = nil // it is an answer
	}
	if ctx.Err() != nil && errors.Is(context.Cause(ctx), context.Canceled) {
		return false, nil // it is we who end
	}
	if missed := u.pingedAt(began, err); missed >= maxMissed {
		session.ended(fmt.Errorf("it has not answered %d pings", missed))
		session.Close()
	}
	return true, err
}

// pingedAt notes a ping and counts those that were missed.
func (u *Upstream) pingedAt(began time.Time, err error) int {
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
		u.pinged = nil // it was about a session that ends
	}
	return p.Missed
}

// idleSession takes a session that nobody uses; nil where there is none, or one is
// in use.
func (u *Upstream) idleSession() (*Session, func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	var found *slot
	for _, slots := range u.slots {
		for _, each := range slots {
			switch {
			case each.users > 0:
				return nil, nil
			case each.session != nil && !each.session.goneAlready():
				found = each
			}
		}
	}
	if found == nil || u.closed {
		return nil, nil
	}
	nobody := &Want{}
	u.use(found, nobody)
	return found.session, func() { u.giveBack(found, nobody) }
}
