package gateway

import (
	"context"
	"crypto/sha256"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/deployment"
	"github.com/guideway-dev/guideway/internal/platform/digest"
	"github.com/guideway-dev/guideway/internal/platform/lists"
	"golang.org/x/time/rate"
)

// limits limits call rates. It has one bucket for each client, upstream and tool with a
// limit.
type limits struct {
	// shared counts the calls of all instances of a deployment; nil for a single instance,
	// which uses the fields below.
	shared deployment.State

	mu      sync.Mutex
	buckets map[string]*bucket
	// answered maps the hashes of the request states that clients have returned to the
	// times of their return.
	answered map[string]time.Time
}

type bucket struct {
	*rate.Limiter
	perMinute int
	used      time.Time
}

// maxBuckets is the number of buckets at which unused ones are dropped, and the maximum
// number of remembered request states. A bucket that was unused for a minute is full again,
// so dropping it changes nothing.
const maxBuckets = 10000

// bound is the limit of one bucket.
type bound struct {
	// what and name identify the bucket; said is the beginning of the refusal's text.
	what, name, said string
	perMinute        int
}

func (b bound) key() string { return b.what + "\x00" + b.name }

// takeAll takes one call from the buckets of all bounds, or from none. If it takes none, it
// returns the bound that blocks longest and the time to wait.
func (l *limits) takeAll(bounds ...bound) (over *bound, wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	var from []*bucket
	for i, b := range bounds {
		each := l.bucketOf(now, b)
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

// bucketOf returns the bucket of a bound. The caller holds mu.
func (l *limits) bucketOf(now time.Time, of bound) *bucket {
	key := of.key()
	b := l.buckets[key]
	if b == nil || b.perMinute != of.perMinute {
		if len(l.buckets) >= maxBuckets {
			l.removeIdle(now)
		}
		b = &bucket{Limiter: rate.NewLimiter(rate.Limit(float64(of.perMinute)/60), of.perMinute), perMinute: of.perMinute}
		l.buckets[key] = b
	}
	b.used = now
	return b
}

// isFirstAnswer reports whether a client returns a request state for the first time. Such a
// call continues a call that was counted. A call with the same state again is a new call,
// so that repeating an answer does not avoid the limits. If too many states are remembered,
// every call is a new one.
func (l *limits) isFirstAnswer(state string) bool {
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
	l.answered[key] = now
	return true
}

func (l *limits) removeIdle(now time.Time) {
	for key, b := range l.buckets {
		if now.Sub(b.used) > time.Minute {
			delete(l.buckets, key)
		}
	}
}

// checkLimits refuses a call that exceeds a limit. The error contains the time to wait. A
// refused call does not count, nor does the first answer to a question, which has a state.
func (g *Gateway) checkLimits(ctx context.Context, c *Client, t *tool, state string) error {
	bounds := g.boundsOf(c, t.member)
	if !t.unlisted { // For an unlisted tool, the tool that the hooks choose is counted instead.
		bounds = append(bounds, t.toolBound())
	}
	return g.limits.refuseOver(ctx, state, bounds...)
}

// boundsOf returns the bounds of every request of a client to an upstream.
func (g *Gateway) boundsOf(c *Client, m *member) []bound {
	return []bound{
		{"client", c.stateOwner() + "\x00" + c.Principal.Client, "this client has sent too many calls", int(g.clientPerMinute.Load())},
		{"upstream", m.Name(), "the upstream " + m.Name() + " was called too often", m.PerMinute},
	}
}

// checkRequestLimits checks the limits of a request that is not a tool call: a prompt, a
// resource or a completion. Such a request costs an upstream as much as a tool call.
func (g *Gateway) checkRequestLimits(ctx context.Context, c *Client, m *member, r Request) error {
	return g.limits.refuseOver(ctx, r.State, g.boundsOf(c, m)...)
}

// checkToolLimit checks the limit of the tool only.
func (g *Gateway) checkToolLimit(ctx context.Context, t *tool) error {
	return g.limits.refuseOver(ctx, "", t.toolBound())
}

func (t *tool) toolBound() bound {
	return bound{"tool", t.member.Name() + "\x00" + t.original, "the tool " + t.name + " was called too often", t.member.ToolPerMinute}
}

// refuseOver takes a call from the buckets of the bounds that are limits.
func (l *limits) refuseOver(ctx context.Context, state string, bounds ...bound) (err error) {
	bounds = slices.DeleteFunc(bounds, func(b bound) bool { return b.perMinute <= 0 })
	if len(bounds) == 0 {
		return nil
	}
	var over *bound
	var wait time.Duration
	switch {
	case l.shared != nil:
		over, wait, err = l.takeShared(ctx, state, bounds)
	case !l.isFirstAnswer(state):
		over, wait = l.takeAll(bounds...)
	}
	if over == nil {
		return err
	}
	return guideway.Errorf(guideway.CodeUnavailable, "%s: the limit of calls per minute is %d; call again in %s", over.said, over.perMinute, wait)
}

// takeShared is takeAll for the calls of all instances, unless the call is the first answer
// with a state.
func (l *limits) takeShared(ctx context.Context, state string, bounds []bound) (over *bound, wait time.Duration, err error) {
	if state != "" {
		first, err := deployment.UseOnce(ctx, l.shared, "answers/"+digest.Hex(state), time.Now(), 2*stateTime)
		if first || err != nil {
			return nil, 0, err
		}
	}
	i, wait, err := l.shared.Take(ctx, lists.Map(bounds, func(b bound) deployment.Limit {
		return deployment.Limit{Name: "limits/" + digest.Hex(b.key()), PerMinute: b.perMinute}
	}))
	if i < 0 || err != nil {
		return nil, 0, err
	}
	return &bounds[i], wait, nil
}
