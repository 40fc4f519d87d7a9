package gateway

import (
	"fmt"
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// limits bounds how often is called: a bucket for each client, upstream and tool
// that has a bound.
type limits struct {
	mu      sync.Mutex
	buckets map[string]*bucket
}

type bucket struct {
	*rate.Limiter
	perMinute int
	used      time.Time
}

// maxBuckets bounds the memory; those that were unused for a minute are full
// again, and nothing is lost with them.
const maxBuckets = 10000

// allow takes one call out of a bucket; wait says when there is one again.
func (l *limits) allow(what, name string, perMinute int) (wait time.Duration, ok bool) {
	if perMinute <= 0 {
		return 0, true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	key := what + "\x00" + name
	b := l.buckets[key]
	if b == nil || b.perMinute != perMinute {
		if len(l.buckets) >= maxBuckets {
			l.sweep(now)
		}
		if l.buckets == nil {
			l.buckets = map[string]*bucket{}
		}
		b = &bucket{Limiter: rate.NewLimiter(rate.Limit(float64(perMinute)/60), perMinute), perMinute: perMinute}
		l.buckets[key] = b
	}
	b.used = now
	if b.AllowN(now, 1) {
		return 0, true
	}
	missing := 1 - b.TokensAt(now)
	return time.Duration(math.Ceil(missing*60/float64(perMinute))) * time.Second, false
}

func (l *limits) sweep(now time.Time) {
	for key, b := range l.buckets {
		if now.Sub(b.used) > time.Minute {
			delete(l.buckets, key)
		}
	}
}

// limited says what is refused, and when it is not any more; empty is nothing.
func (g *Gateway) limited(c *Client, t *tool) string {
	for _, each := range []struct {
		what, name string
		perMinute  int
	}{
		{"client", c.owner() + "\x00" + c.Principal.Client, int(g.clientPerMinute.Load())},
		{"upstream", t.member.Name(), t.member.PerMinute},
	} {
		if why := g.limits.refuse(each.what, each.name, each.perMinute); why != "" {
			return why
		}
	}
	if t.unlisted {
		return "" // it is the tool that it turns out to be that counts
	}
	return g.toolLimited(t)
}

// toolLimited is limited for the tool alone.
func (g *Gateway) toolLimited(t *tool) string {
	return g.limits.refuse("tool", t.member.Name()+"\x00"+t.original, t.member.ToolPerMinute)
}

func (l *limits) refuse(what, name string, perMinute int) string {
	wait, ok := l.allow(what, name, perMinute)
	if ok {
		return ""
	}
	return fmt.Sprintf("the %s has been called %d times within a minute, which is its limit; call again in %s", what, perMinute, wait)
}
