// Package admin shows and changes the upstreams of the configuration while a gateway uses
// them. The CLI and the HTTP API call it.
package admin

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"sync"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/gateway"
	"github.com/guideway-dev/guideway/internal/gateway/pins"
	"github.com/guideway-dev/guideway/internal/gateway/upstream"
	"github.com/guideway-dev/guideway/internal/install"
)

// Pins stores the pins of upstreams. Forget removes all pins of one upstream.
type Pins interface {
	pins.Pins
	Forget(name string) error
}

var _ Pins = pins.Store{}

// Options configure a Service. All but Gateway, Apply, Background and
// CacheDir are required.
type Options struct {
	// Load reads the current configuration.
	Load func() (*config.Config, error)
	// Edit changes the configuration file. It returns CodeConflict if the file was changed
	// in between.
	Edit func(ctx context.Context, edit func([]byte) ([]byte, error)) error
	// Gateway serves the upstreams; nil if the toolset "gateway" is off.
	Gateway *gateway.Gateway
	// Apply applies the current configuration to the gateway; nil if there is no gateway.
	Apply func() error
	// Background runs a task until it ends or the gateway closes; nil if there is no gateway.
	Background func(task func(ctx context.Context))
	// Pins stores the approvals.
	Pins Pins
	// Upstream has the store of logins and the options for new logins.
	Upstream upstream.Options
	// CacheDir holds the catalogs of the upstreams; if empty, they are not cached.
	CacheDir string
	// Logs returns the last lines of an upstream's log.
	Logs func(name string, lines int) ([]string, error)
	// Machine is the environment in which a client's configuration is read, to detect the
	// entries for Guideway in it.
	Machine install.Env
}

// Service manages upstreams. It is safe for concurrent use.
type Service struct {
	Options
	// key signs the versions, which are valid for this process only: a version must not let
	// a reader guess the secrets of its upstream.
	key []byte
	// editing serializes changes.
	editing sync.Mutex
	// logins holds the functions that end the latest login to each upstream; editing guards
	// it.
	logins map[string]context.CancelFunc
}

// New returns a service. It does no I/O.
func New(opts Options) *Service {
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // never fails: the process exits instead
	return &Service{Options: opts, key: key, logins: map[string]context.CancelFunc{}}
}

// On reports whether the upstreams are offered to agents.
func (s *Service) On() bool { return s.Gateway != nil }

// loadConfig reads the current configuration. A broken file is CodeUnavailable, since the
// caller did not cause it.
func (s *Service) loadConfig() (*config.Config, error) {
	cfg, err := s.Load()
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "read the configuration: %w", err).WithFix("fix the file; to find its errors, run: guideway doctor")
	}
	return cfg, nil
}

// findUpstream returns an upstream of the configuration.
func (s *Service) findUpstream(name string) (config.Upstream, error) {
	cfg, err := s.loadConfig()
	if err != nil {
		return config.Upstream{}, err
	}
	i := slices.IndexFunc(cfg.Upstreams, func(u config.Upstream) bool { return u.Name == name })
	if i < 0 {
		return config.Upstream{}, guideway.Errorf(guideway.CodeNotFound, "there is no upstream %q", clipName(name)).
			WithFix("guideway upstream list")
	}
	return cfg.Upstreams[i], nil
}

func clipName(text string) string { return text[:min(len(text), upstream.MaxNameLength)] }

// baseOf returns the version of an upstream's configuration. A change must name the version
// that it replaces.
func (s *Service) baseOf(u config.Upstream) string {
	text, _ := json.Marshal(u) // strings, lists and maps always marshal
	mac := hmac.New(sha256.New, s.key)
	mac.Write([]byte(u.Name + "\x00"))
	mac.Write(text)
	return hex.EncodeToString(mac.Sum(nil)[:16])
}

// EntryOf converts an upstream of the configuration to a gateway entry.
func EntryOf(u config.Upstream) gateway.Entry {
	e := gateway.Entry{
		Spec: upstream.Spec(u.UpstreamServer), Tools: u.Tools,
		Disabled: u.Disabled, Project: u.Project, Sessions: gateway.Sessions(u.Sessions), Pins: pins.Mode(u.Pins),
		PerMinute: u.CallsPerMinute, ToolPerMinute: u.ToolCallsPerMinute,
	}
	if u.Prefix != nil {
		e.Prefix, e.NoPrefix = *u.Prefix, *u.Prefix == ""
	}
	return e
}
