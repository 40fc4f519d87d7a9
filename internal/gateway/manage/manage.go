// Package manage looks after the upstreams of the configuration: what is told of
// them, and how they are changed while a gateway uses them. The command line and
// the HTTP API are two surfaces of it.
package manage

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
	"github.com/guideway-dev/guideway/internal/install"
	"github.com/guideway-dev/guideway/internal/upstream"
)

// Pins are the approvals of tools, with the way to forget those of an upstream.
type Pins interface {
	gateway.Pins
	Forget(name string) error
}

var _ Pins = gateway.PinStore{}

// Options are what a Service works with. All but Gateway and Apply are needed.
type Options struct {
	// Load reads the configuration as it is now.
	Load func() (*config.Config, error)
	// Edit changes the configuration file. It is CodeConflict where the file was
	// changed in between.
	Edit func(ctx context.Context, edit func([]byte) ([]byte, error)) error
	// Gateway uses the upstreams; nil where the toolset is off.
	Gateway *gateway.Gateway
	// Apply has the gateway use what the configuration says now; nil where there
	// is no gateway.
	Apply func() error
	// Pins are the approvals of tools.
	Pins Pins
	// CacheDir has what upstreams have offered; empty is nowhere.
	CacheDir string
	// Logs gives the last lines that an upstream has said.
	Logs func(name string, lines int) ([]string, error)
	// Machine knows what entries in a client's configuration are our own.
	Machine install.Env
}

// Service looks after upstreams. It may be used from several goroutines.
type Service struct {
	Options
	// key makes versions, which are good for this process: who may read an
	// upstream is not to find its secrets by trying.
	key []byte
	// editing lets one change be made at a time.
	editing sync.Mutex
}

// New makes a service. It does no I/O.
func New(opts Options) *Service {
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // never fails: the process ends instead
	return &Service{Options: opts, key: key}
}

// On tells whether the upstreams are offered to agents.
func (s *Service) On() bool { return s.Gateway != nil }

// config is the configuration as it is now. One that somebody has broken is no fault
// of who asks.
func (s *Service) config() (*config.Config, error) {
	cfg, err := s.Load()
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "read the configuration: %w", err).WithFix("mend the file; guideway doctor")
	}
	return cfg, nil
}

// find gives an upstream of the configuration.
func (s *Service) find(name string) (*config.Config, config.Upstream, error) {
	cfg, err := s.config()
	if err != nil {
		return nil, config.Upstream{}, err
	}
	i := slices.IndexFunc(cfg.Upstreams, func(u config.Upstream) bool { return u.Name == name })
	if i < 0 {
		return cfg, config.Upstream{}, guideway.Errorf(guideway.CodeNotFound, "there is no upstream %q", clip(name)).
			WithFix("guideway upstream list")
	}
	return cfg, cfg.Upstreams[i], nil
}

func clip(text string) string { return text[:min(len(text), upstream.MaxNameLength)] }

// base names a version of an upstream, for a change of it.
func (s *Service) base(u config.Upstream) string {
	text, _ := json.Marshal(u) // texts, lists and maps always marshal
	mac := hmac.New(sha256.New, s.key)
	mac.Write([]byte(u.Name + "\x00"))
	mac.Write(text)
	return hex.EncodeToString(mac.Sum(nil)[:16])
}

// EntryOf is an upstream of the configuration as a gateway has it.
func EntryOf(u config.Upstream) gateway.Entry {
	e := gateway.Entry{
		Spec:     specOf(u),
		Disabled: u.Disabled, Project: u.Project, Sessions: gateway.Sessions(u.Sessions), Pins: gateway.PinMode(u.Pins),
		PerMinute: u.CallsPerMinute, ToolPerMinute: u.ToolCallsPerMinute,
	}
	if u.Prefix != nil {
		e.Prefix, e.NoPrefix = *u.Prefix, *u.Prefix == ""
	}
	for name, rule := range u.Tools {
		if e.Tools == nil {
			e.Tools = map[string]gateway.ToolRule{}
		}
		e.Tools[name] = gateway.ToolRule{Hide: rule.Hide, Name: rule.Name, Description: rule.Description}
	}
	return e
}
