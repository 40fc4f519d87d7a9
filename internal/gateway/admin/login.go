package admin

import (
	"context"
	"time"

	"github.com/guideway-dev/guideway/internal/gateway/upstream"
)

// LoginPage is the page of an authorization server on which a person logs in to an upstream.
type LoginPage struct {
	URL    string `json:"url"`
	Issuer string `json:"issuer"`
}

// loginTime is the time in which a person must log in.
const loginTime = 10 * time.Minute

// StartLogin starts a login of the person in front of this computer, and ends an earlier one
// to the same upstream. The authorization server sends the browser to a port of this computer.
func (s *Service) StartLogin(ctx context.Context, name string) (*LoginPage, error) {
	if err := s.checkInUse(name); err != nil {
		return nil, err
	}
	u, err := s.findUpstream(name)
	if err != nil {
		return nil, err
	}
	cfg, err := s.loadConfig()
	if err != nil {
		return nil, err
	}
	login, err := upstream.StartLoopbackLogin(ctx, EntryOf(u).Spec, s.Upstream, upstream.LoginOptions{ClientMetadata: cfg.Gateway.ClientMetadata})
	if err != nil {
		return nil, err
	}
	waiting, end := context.WithTimeout(context.WithoutCancel(ctx), loginTime)
	s.editing.Lock()
	if endEarlier := s.logins[name]; endEarlier != nil {
		endEarlier()
	}
	s.logins[name] = end
	s.editing.Unlock()
	s.Background(func(life context.Context) {
		defer end()
		defer context.AfterFunc(life, end)()
		defer login.Close()
		_, _ = login.Wait(waiting) // The browser shows the error.
	})
	return &LoginPage{URL: login.URL, Issuer: login.Issuer}, nil
}
