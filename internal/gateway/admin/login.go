package admin

import (
	"context"
	"net/url"
	"strings"

	"github.com/guideway-dev/guideway/internal/gateway/upstream"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
)

// LoginPage is the page of an authorization server on which a person logs in to an upstream.
type LoginPage struct {
	URL    string `json:"url"`
	Issuer string `json:"issuer"`
}

// StartLogin starts a login of a user, and ends an earlier one of the user to the same upstream.
// If the server has a public URL, the authorization server sends the browser there, and it must
// be the browser that is given. Otherwise it sends the browser to a port of this computer.
func (s *Service) StartLogin(ctx context.Context, name, user, browser string) (*LoginPage, error) {
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
	spec, opts, login := EntryOf(u).Spec, s.optionsOf(user), upstream.LoginOptions{ClientMetadata: cfg.Gateway.ClientMetadata}
	if cfg.PublicURL != "" && browser != "" {
		login.Redirect = strings.TrimSuffix(cfg.PublicURL, "/") + auth.UpstreamCallbackPath
		l, err := upstream.StartLogin(ctx, spec, opts, login)
		if err == nil {
			err = l.Save(ctx, browser)
		}
		if err != nil {
			return nil, err
		}
		return &LoginPage{URL: l.URL, Issuer: l.Issuer}, nil
	}
	l, err := upstream.StartLoopbackLogin(ctx, spec, opts, login)
	if err != nil {
		return nil, err
	}
	waiting, end := context.WithTimeout(context.WithoutCancel(ctx), upstream.LoginTime)
	s.editing.Lock()
	key := name + "\x00" + user
	if endEarlier := s.logins[key]; endEarlier != nil {
		endEarlier()
	}
	s.logins[key] = end
	s.editing.Unlock()
	s.Background(func(life context.Context) {
		defer end()
		defer context.AfterFunc(life, end)()
		defer l.Close()
		if _, err := l.Wait(waiting); err == nil { // The browser shows the error.
			s.Gateway.Relist()
		}
	})
	return &LoginPage{URL: l.URL, Issuer: l.Issuer}, nil
}

// FinishLogin ends a login to an upstream with the parameters of its redirect. The same user must
// have started it in the same browser. It returns the name of the upstream.
func (s *Service) FinishLogin(ctx context.Context, query url.Values, user, browser string) (name string, err error) {
	state := query.Get("state")
	name = state[:max(0, strings.LastIndexByte(state, '.'))]
	if err := s.checkInUse(name); err != nil {
		return "", err
	}
	u, err := s.findUpstream(name)
	if err != nil {
		return "", err
	}
	l, err := upstream.ResumeLogin(ctx, EntryOf(u).Spec, s.optionsOf(user), state, browser)
	if err != nil {
		return "", err
	}
	if _, err := l.Finish(ctx, query); err != nil {
		return "", err
	}
	s.Gateway.Relist() // the clients of the user now see the tools
	return name, nil
}

// Logout removes the login of a user to an upstream.
func (s *Service) Logout(ctx context.Context, name, user string) error {
	u, err := s.findUpstream(name)
	if err == nil {
		_, _, err = upstream.Logout(ctx, EntryOf(u).Spec, s.optionsOf(user))
	}
	return err
}

// optionsOf returns the options for connections with the logins of a user.
func (s *Service) optionsOf(user string) upstream.Options {
	opts := s.Upstream
	opts.Logins = opts.Logins.Of(user)
	return opts
}
