package gateway

import (
	"crypto/sha256"
	"math"
	"sync"
	"time"

	"github.com/guideway-dev/guideway"
	"golang.org/x/time/rate"
)

// limits bounds how often is called: a bucket for each client, upstream and tool
// that has a bound.
type limits struct {
	mu      sync.Mutex
	buckets map[string]*bucket
	// answered are the states that have come back, until they are too old.
	answered map[string]time.Time
}

type bucket struct {
	*rate.Limiter
	perMinute int
	used      time.Time
}

// maxBuckets bounds the memory; those that were unused for a minute are full
// again, and nothing is lost with them.
const maxBuckets = 10000

// bound is a limit of one bucket.
type bound struct {
	// what and name are the bucket, said begins a refusal.
	what, name, said string
	perMinute        int
}

// take takes one call out of the buckets of all bounds, or out of none: then it gives
// the bound that holds longest, and when it does not any more.
func (l *limits) take(bounds ...bound) (over *bound, wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	var from []*bucket
	for i, b := range bounds {
		if b.perMinute <= 0 {
			continue
		}
		each := l.bucket(now, b)
		from = append(from, each)
		if missing := 1 - each.TokensAt(now); missing > 0 {
			left := time.Duration(math.Ceil(missing*60/float64(b.perMinute))) * time.Second
			if left > wait {
				over, wait = &bounds[i], left
			}
		}
	}
	if over == nil {
		for _, each := range from {
			each.AllowN(now, 1)
		}
	}
	return over, wait
}

// bucket gives the bucket of a bound. mu is held.
func (l *limits) bucket(now time.Time, of bound) *bucket {
	key := of.what + "\x00" + of.name
	b := l.buckets[key]
	if b == nil || b.perMinute != of.perMinute {
		if len(l.buckets) >= maxBuckets {
			l.sweep(now)
		}
		if l.buckets == nil {
			l.buckets = map[string]*bucket{}
		}
		b = &bucket{Limiter: rate.NewLimiter(rate.Limit(float64(of.perMinute)/60), of.perMinute), perMinute: of.perMinute}
		l.buckets[key] = b
	}
	b.used = now
	return b
}

// first tells whether a call comes with the answer to a question for the first time: it
// belongs to a call that was counted. One that comes with the same state again is
// another call, of which a question makes no end.
func (l *limits) first(state string) bool {
	if state == "" {
		return false
	}
	sum := sha256.Sum256([]byte(state))
	key, now := string(sum[:]), time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, again := l.answered[key]; again {
		return false
	}
	if len(l.answered) >= maxBuckets {
		for old, at := range l.answered {
			if now.Sub(at) > stateTime {
				delete(l.answered, old)
			}
		}
	}
	if len(l.answered) >= maxBuckets {
		return false
	}
	if l.answered == nil {
		l.answered = map[string]time.Time{}
	}
	l.answered[key] = now
	return true
}

func (l *limits) sweep(now time.Time) {
	for key, b := range l.buckets {
		if now.Sub(b.used) > time.Minute {
			delete(l.buckets, key)
		}
	}
}

// limited refuses a call that is over a limit, and says when it is not any more. What
// is refused counts for nothing.
func (g *Gateway) limited(c *Client, t *tool) error {
	bounds := g.bounds(c, t.member)
	if !t.unlisted { // else it is the tool that it turns out to be that counts
		bounds = append(bounds, t.bound())
	}
	return g.limits.refuse(bounds...)
}

// bounds are those of every request of a client to an upstream.
func (g *Gateway) bounds(c *Client, m *member) []bound {
	return []bound{
		{"client", c.owner() + "\x00" + c.Principal.Client, "this client has called too often", int(g.clientPerMinute.Load())},
		{"upstream", m.Name(), "the upstream " + m.Name() + " was called too often", m.PerMinute},
	}
}

// requestLimited is limited for what is no call of a tool: a prompt, a resource, a
// completion. It costs an upstream as much.
func (g *Gateway) requestLimited(c *Client, m *member, r Request) error {
	if g.limits.first(r.State) {
		return nil
	}
	return g.limits.refuse(g.bounds(c, m)...)
}

// toolLimited is limited for the tool alone.
func (g *Gateway) toolLimited(t *tool) error { return g.limits.refuse(t.bound()) }

func (t *tool) bound() bound {
	return bound{"tool", t.member.Name() + "\x00" + t.original, "the tool " + t.name + " was called too often", t.member.ToolPerMinute}
}

func (l *limits) refuse(bounds ...bound) error {
	over, wait := l.take(bounds...)
	if over == nil {
		return nil
	}
	return guideway.Errorf(guideway.CodeUnavailable, "%s, its limit is %d calls in a minute; call again in %s", over.said, over.perMinute, wait).
		WithFix("call again in %s, or another tool until then", wait)
}
