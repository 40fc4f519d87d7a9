package notice

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/guideway-dev/guideway/internal/platform/deployment"
	"github.com/guideway-dev/guideway/internal/platform/digest"
)

const (
	// claimReserve is the time after the time limit of a delivery until another instance
	// takes its claim over.
	claimReserve = 10 * time.Second
	// keepClaims is how long the instances remember that a notice was delivered.
	keepClaims = 30 * 24 * time.Hour
	// delivered is the text of a claim after the delivery.
	delivered = "delivered"
)

// claims let one instance of a deployment deliver a notice to a receiver. A claim is an entry
// of the shared state with a token of the process that delivers, or delivered. An instance
// takes over the claim of another one after it was unchanged for longer than a delivery takes,
// so that the clocks of computers do not matter.
type claims struct {
	shared   deployment.State // nil if only this machine serves the receiver
	prefix   string
	patience time.Duration
	// id, text and since are the last claim that was seen, and since when.
	id, text string
	since    time.Time
}

func newClaims(o *Options, r *Receiver) *claims {
	c := &claims{prefix: "notices/" + digest.Hex(r.Target()) + "/", patience: r.Timeout + claimReserve}
	if r.Shared {
		c.shared = o.Shared
	}
	return c
}

// takeClaim claims a notice. The token is "" if another instance delivers it or, if done is
// true, has delivered it.
func (c *claims) takeClaim(ctx context.Context, id string) (token string, done bool, err error) {
	own := rand.Text()
	if c.shared == nil {
		return own, false, nil
	}
	err = c.shared.Change(ctx, c.prefix+id, func(text string) (string, error) {
		if token, done = "", text == delivered; done {
			return text, nil
		}
		if c.id != id || c.text != text {
			c.id, c.text, c.since = id, text, time.Now()
		}
		if text != "" && time.Since(c.since) <= c.patience {
			return text, nil
		}
		token = own
		return own, nil
	})
	return token, done, err
}

// endClaim records that a notice was accepted, or lets any instance try again.
func (c *claims) endClaim(id, token string, accepted bool) error {
	if c.shared == nil {
		return nil
	}
	ctx, cancel := deployment.Context()
	defer cancel()
	err := c.shared.Change(ctx, c.prefix+id, func(text string) (string, error) {
		switch {
		case accepted:
			return delivered, nil
		case text == token:
			return "", nil
		}
		return text, nil
	})
	if err == nil && accepted {
		err = c.shared.Prune(ctx, "notices/", time.Now().Add(-keepClaims))
	}
	return err
}
