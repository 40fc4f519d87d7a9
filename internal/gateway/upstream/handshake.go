package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/gateway/jsonrpc"
)

// Info is what a server says of itself.
type Info struct {
	// Version is the protocol version that is spoken.
	Version string `json:"version"`
	// Server is the server's name and version.
	Server Implementation `json:"server"`
	// Instructions are words for a model. Nobody is shown them by itself.
	Instructions string `json:"instructions,omitempty"`
	// Capabilities are what the server can do.
	Capabilities Capabilities `json:"capabilities"`
}

// Capabilities are what a server can do, as far as we use it.
type Capabilities struct {
	Tools       *listCapability `json:"tools,omitempty"`
	Prompts     *listCapability `json:"prompts,omitempty"`
	Resources   *listCapability `json:"resources,omitempty"`
	Completions *struct{}       `json:"completions,omitempty"`
	Logging     *struct{}       `json:"logging,omitempty"`
}

type listCapability struct {
	ListChanged bool `json:"listChanged,omitempty"`
	Subscribe   bool `json:"subscribe,omitempty"`
}

// versions are the protocol versions that we speak, newest first.
func versions() []string {
	return []string{ModernVersion, "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}
}

// CheckProtocol refuses a version that we do not speak; empty is any.
func CheckProtocol(version string) error {
	if version == "" || slices.Contains(versions(), version) {
		return nil
	}
	return guideway.Errorf(guideway.CodeInvalid, "%q is not a protocol version", version).
		WithFix("use one of %v", versions())
}

// discoverTime is how long a server on stdio may think about server/discover
// before the handshake of the legacy era is tried: some answer nothing before
// it.
const discoverTime = 5 * time.Second

// handshake agrees on a version. known is the version of an earlier time, or "".
func (s *Session) handshake(ctx context.Context, known string) error {
	pinned := s.opts.spec.Protocol
	legacy := pinned != "" && pinned < ModernVersion ||
		pinned == "" && known != "" && known < ModernVersion || s.opts.spec.Kind() == TransportSSE
	if !legacy {
		err := s.discover(ctx)
		if err == nil || pinned >= ModernVersion || ctx.Err() != nil || guideway.ErrorCode(err) == guideway.CodeUnauthorized {
			return err
		}
	}
	return s.initialize(ctx, pinned)
}

// discover begins the modern era.
func (s *Session) discover(ctx context.Context) error {
	if s.opts.spec.Kind() == TransportStdio {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, discoverTime)
		defer cancel()
	}
	result, err := s.Do(ctx, Call{Method: "server/discover", Meta: s.modernMeta(ModernVersion, nil), Endless: true})
	if err != nil {
		return fmt.Errorf("server/discover: %w", err)
	}
	var said struct {
		Info
		Supported []string `json:"supportedVersions"`
		Meta      struct {
			Server Implementation `json:"io.modelcontextprotocol/serverInfo"`
		} `json:"_meta"`
	}
	if err := json.Unmarshal(result, &said); err != nil {
		return fmt.Errorf("server/discover: %w", err)
	}
	if !slices.Contains(said.Supported, ModernVersion) {
		return errors.New("server/discover: the server does not speak " + ModernVersion)
	}
	s.info = said.Info
	s.info.Version, s.info.Server = ModernVersion, said.Meta.Server
	s.info.clean()
	s.conn.negotiated(s.info.Version)
	return nil
}

// initialize begins a session of the legacy era.
func (s *Session) initialize(ctx context.Context, pinned string) error {
	version := pinned
	if version == "" {
		version = versions()[1]
	}
	capabilities := s.opts.capabilities
	if capabilities == nil {
		capabilities = json.RawMessage(`{}`)
	}
	client, _ := json.Marshal(s.opts.client) // texts always marshal
	result, err := s.Do(ctx, Call{Method: "initialize", Endless: true, Members: []jsonrpc.Member{
		{Key: "protocolVersion", Value: jsonrpc.Text(version)},
		{Key: "capabilities", Value: capabilities},
		{Key: "clientInfo", Value: client},
	}})
	if err != nil {
		return fmt.Errorf("initialize: %w", err)
	}
	var said struct {
		Version      string         `json:"protocolVersion"`
		Server       Implementation `json:"serverInfo"`
		Instructions string         `json:"instructions"`
		Capabilities Capabilities   `json:"capabilities"`
	}
	if err := json.Unmarshal(result, &said); err != nil {
		return fmt.Errorf("initialize: %w", err)
	}
	if !slices.Contains(versions()[1:], said.Version) {
		return guideway.Errorf(guideway.CodeUnavailable, "initialize: the server wants the protocol version %.20q, which is not spoken here", said.Version)
	}
	s.info = Info{Version: said.Version, Server: said.Server, Instructions: said.Instructions, Capabilities: said.Capabilities}
	s.info.clean()
	s.conn.negotiated(s.info.Version)
	if err := s.Notify(ctx, "notifications/initialized", nil); err != nil {
		return fmt.Errorf("initialize: %w", err)
	}
	return nil
}

// clean bounds what a person may be shown.
func (i *Info) clean() {
	for _, text := range []*string{&i.Server.Name, &i.Server.Title, &i.Server.Version} {
		*text = plainText(clip(*text, 200))
	}
	i.Instructions = clip(i.Instructions, 16<<10)
}

func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return text[:most]
}
