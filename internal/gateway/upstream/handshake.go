package upstream

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/gateway/jsonrpc"
	"github.com/guideway-dev/guideway/internal/platform/textpart"
)

// Info describes a server, as reported in its handshake.
type Info struct {
	// Version is the negotiated protocol version.
	Version string `json:"version"`
	// Server is the server's name and version.
	Server Implementation `json:"server"`
	// Instructions are a text for a model. They are not forwarded automatically.
	Instructions string `json:"instructions,omitempty"`
	// Capabilities are the server's capabilities.
	Capabilities Capabilities `json:"capabilities"`
	// Earlier reports whether a modern server also supports the newest legacy version.
	Earlier bool `json:"earlier,omitempty"`
}

// Capabilities are the capabilities of a server that the gateway uses.
type Capabilities struct {
	Tools       *listCapability `json:"tools,omitempty"`
	Prompts     *listCapability `json:"prompts,omitempty"`
	Resources   *listCapability `json:"resources,omitempty"`
	Completions *struct{}       `json:"completions,omitempty"`
	Logging     *struct{}       `json:"logging,omitempty"`
	Extensions  Extensions      `json:"extensions,omitempty"`
}

type listCapability struct {
	ListChanged bool `json:"listChanged,omitempty"`
	Subscribe   bool `json:"subscribe,omitempty"`
}

// supportedVersions returns the supported protocol versions, newest first.
func supportedVersions() []string {
	return []string{ModernVersion, "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}
}

// CheckProtocol returns an error for an unsupported version; an empty one is valid.
func CheckProtocol(version string) error {
	if version == "" || slices.Contains(supportedVersions(), version) {
		return nil
	}
	return guideway.Errorf(guideway.CodeInvalid, "%q is not a supported protocol version", version).
		WithFix("use one of: %s", strings.Join(supportedVersions(), ", "))
}

// discoverTime is the time that a stdio server has to answer server/discover before the
// legacy handshake is tried: some servers answer no request before that handshake.
const discoverTime = 5 * time.Second

// handshake negotiates a version. known is the version of a previous session, or "".
func (s *Session) handshake(ctx context.Context, known string) error {
	pinned := s.opts.spec.Protocol
	legacy := pinned != "" && pinned < ModernVersion ||
		pinned == "" && known != "" && known < ModernVersion || s.opts.spec.Kind() == TransportSSE
	if !legacy {
		err := s.startModern(ctx)
		if err == nil || pinned >= ModernVersion || ctx.Err() != nil || guideway.ErrorCode(err) == guideway.CodeUnauthorized {
			return err
		}
	}
	return s.startLegacy(ctx, pinned)
}

// startModern starts a modern session.
func (s *Session) startModern(ctx context.Context) error {
	if s.opts.spec.Kind() == TransportStdio {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, discoverTime)
		defer cancel()
	}
	result, err := s.Do(ctx, Call{Method: "server/discover", Meta: append(s.modernMeta(ModernVersion, nil), s.clientInfo()), Endless: true})
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
		return fmt.Errorf("server/discover: the server's answer is invalid: %w", err)
	}
	if !slices.Contains(said.Supported, ModernVersion) {
		return guideway.Errorf(guideway.CodeUnavailable, "server/discover: the server does not support the protocol version %s", ModernVersion).
			WithFix(`set "protocol" of the upstream to a version that the server supports, or remove it`)
	}
	s.info = said.Info
	s.info.Version, s.info.Server = ModernVersion, said.Meta.Server
	s.info.Earlier = slices.Contains(said.Supported, supportedVersions()[1])
	s.info.sanitizeTexts()
	s.conn.negotiated(s.info.Version)
	return nil
}

// startLegacy starts a legacy session.
func (s *Session) startLegacy(ctx context.Context, pinned string) error {
	version := pinned
	if version == "" {
		version = supportedVersions()[1]
	}
	capabilities := s.opts.capabilities
	if capabilities == nil {
		capabilities = json.RawMessage(`{}`)
	}
	client, _ := json.Marshal(s.opts.client) // strings always marshal
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
		return fmt.Errorf("initialize: the server's answer is invalid: %w", err)
	}
	if !slices.Contains(supportedVersions()[1:], said.Version) {
		return guideway.Errorf(guideway.CodeUnavailable, "initialize: the server requires the protocol version %.20q, which is not supported", said.Version).
			WithFix("use a version of the server that supports one of: %s", strings.Join(supportedVersions(), ", "))
	}
	s.info = Info{Version: said.Version, Server: said.Server, Instructions: said.Instructions, Capabilities: said.Capabilities}
	s.info.sanitizeTexts()
	s.conn.negotiated(s.info.Version)
	if err := s.Notify(ctx, "notifications/initialized", nil); err != nil {
		return fmt.Errorf("notifications/initialized: %w", err)
	}
	return nil
}

// sanitizeTexts shortens the texts of the server, and removes control characters from its
// names and version.
func (i *Info) sanitizeTexts() {
	for _, text := range []*string{&i.Server.Name, &i.Server.Title, &i.Server.Version} {
		*text = plainText(textpart.Clip(*text, 200))
	}
	i.Instructions = textpart.Clip(i.Instructions, 16<<10)
}
