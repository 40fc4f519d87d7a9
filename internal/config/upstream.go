package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/guideway-dev/guideway"
)

// Gateway is the settings of the gateway.
type Gateway struct {
	// Exposure is ExposureAll or ExposureSearch.
	Exposure string
	// Project selects the upstreams of one project. Empty means all.
	Project string
	// CallsPerMinute is the maximum number of calls of one client. Zero means no limit.
	CallsPerMinute int
	// Health is how often running upstreams are pinged and failed ones retried. Zero means
	// never.
	Health time.Duration
}

// The ways in which upstream tools are exposed.
const (
	// ExposureAll lists every tool.
	ExposureAll = "all"
	// ExposureSearch offers a tool that finds tools and a tool that calls them.
	ExposureSearch = "search"
)

// UpstreamServer describes how an upstream is started or reached. Texts may contain
// references to secrets, "${env:NAME}" and "${keychain:NAME}". They are resolved when the
// server is started, and never written to a log, cache or export.
type UpstreamServer struct {
	// Name is the upstream's name for people and tools.
	Name string `json:"-"`

	// Command, Args, Dir and Env start a server on standard input and output. The process
	// gets the variables of Env, and inherits only those that programs cannot work without.
	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Dir     string            `json:"dir,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
	// URL is the endpoint of a server over HTTP. Transport is "http" or "sse"; empty means
	// that it is detected.
	URL       string            `json:"url,omitempty"`
	Transport string            `json:"transport,omitempty"`
	Headers   map[string]string `json:"headers,omitempty"`
	// Bearer is a token for the server; OAuth requests a token instead.
	Bearer string         `json:"bearer,omitempty"`
	OAuth  *UpstreamOAuth `json:"oauth,omitempty"`

	// Protocol pins the protocol version, such as "2025-11-25"; if empty, it is negotiated.
	Protocol string `json:"protocol,omitempty"`
	// Timeout is the maximum time of a call without progress, a minute if zero. MaxTime is
	// the maximum time of a call regardless of progress, an hour if zero.
	Timeout UpstreamTime `json:"timeout,omitempty"`
	MaxTime UpstreamTime `json:"maxTime,omitempty"`
}

// Upstream is another MCP server.
type Upstream struct {
	UpstreamServer

	Disabled bool   `json:"disabled,omitempty"`
	Project  string `json:"project,omitempty"`
	// Prefix and two underscores precede the names of the upstream's tools. If Prefix
	// points to an empty text, the names are unchanged.
	Prefix *string                 `json:"prefix,omitempty"`
	Tools  map[string]UpstreamTool `json:"tools,omitempty"`
	// Sessions is "auto", "shared" or "client".
	Sessions string `json:"sessions,omitempty"`
	// Pins is "first-use", "approve" or "off".
	Pins               string `json:"pins,omitempty"`
	CallsPerMinute     int    `json:"callsPerMinute,omitempty"`
	ToolCallsPerMinute int    `json:"toolCallsPerMinute,omitempty"`

	// Origin is the place where the upstream is configured.
	Origin Origin `json:"-"`
}

// UpstreamOAuth requests tokens by client credentials (RFC 6749, 4.4).
type UpstreamOAuth struct {
	// TokenURL is the token endpoint. If it is empty, the endpoint is read from the
	// metadata of Issuer (RFC 8414). If Issuer is empty too, the server's metadata names
	// the issuer (RFC 9728), which must be on the server's own host.
	TokenURL     string   `json:"tokenUrl,omitempty"`
	Issuer       string   `json:"issuer,omitempty"`
	ClientID     string   `json:"clientId"`
	ClientSecret string   `json:"clientSecret"`
	Scopes       []string `json:"scopes,omitempty"`
	// Resource is the resource indicator (RFC 8707). If it is empty, it is sent only if
	// TokenURL is also empty: the resource of the server's metadata, or the URL of the
	// server.
	Resource string `json:"resource,omitempty"`
}

// UpstreamTool changes one tool of an upstream.
type UpstreamTool struct {
	// Hide removes the tool from lists and refuses calls.
	Hide bool `json:"hide,omitempty"`
	// Name, Title and Description replace those that the upstream gives the tool.
	Name        string `json:"name,omitempty"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	// ReadOnly, Destructive, Idempotent and OpenWorld replace the annotations of the tool.
	// Nil keeps the upstream's annotation.
	ReadOnly    *bool `json:"readOnly,omitempty"`
	Destructive *bool `json:"destructive,omitempty"`
	Idempotent  *bool `json:"idempotent,omitempty"`
	OpenWorld   *bool `json:"openWorld,omitempty"`
}

// Check returns an error if the annotations contradict each other.
func (t *UpstreamTool) Check() error {
	if t.ReadOnly != nil && *t.ReadOnly && t.Destructive != nil && *t.Destructive {
		return guideway.Errorf(guideway.CodeInvalid, "a tool cannot be both readOnly and destructive").
			WithFix("set one of the two to false, or remove it")
	}
	return nil
}

// UpstreamTime is a duration such as "90s".
type UpstreamTime time.Duration

// UnmarshalJSON implements json.Unmarshaler.
func (t *UpstreamTime) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return errors.New(`a duration must be a string such as "90s"`)
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return fmt.Errorf(`%q is not a duration such as "90s"`, text)
	}
	if d <= 0 {
		return fmt.Errorf(`the duration %q is not positive`, text)
	}
	*t = UpstreamTime(d)
	return nil
}

// MarshalJSON implements json.Marshaler.
func (t UpstreamTime) MarshalJSON() ([]byte, error) {
	return json.Marshal(time.Duration(t).String())
}

// readUpstreams reads the upstreams of the file. Whether an upstream can be reached is
// checked when it is used.
func (f *fileReader) readUpstreams(at int) {
	f.readEntries(at, namedEntries{
		one: "upstream", fix: "write an object of upstreams by their names",
		read: func(name string, text []byte, origin Origin) (int, *settingError) {
			u := Upstream{UpstreamServer: UpstreamServer{Name: name}, Origin: origin}
			of := fmt.Sprintf("the upstream %q", name)
			if offset, invalid := decodeEntry(text, &u, of); invalid != nil {
				return offset, invalid
			}
			if u.CallsPerMinute < 0 || u.ToolCallsPerMinute < 0 {
				return 0, newError("write a positive number, or remove the limit", "%s has a negative limit", of)
			}
			for _, tool := range slices.Sorted(maps.Keys(u.Tools)) {
				rule := u.Tools[tool]
				if err := rule.Check(); err != nil {
					return 0, newError(guideway.ErrorFix(err), "the tool %q of %s: %v", tool, of, err)
				}
			}
			f.config.Upstreams = append(f.config.Upstreams, u)
			return 0, nil
		},
	})
}

func gatewaySettings() []Setting {
	return []Setting{
		{
			Name: "gateway.exposure", Kind: KindText, Flag: "gateway-exposure", Env: "GUIDEWAY_GATEWAY_EXPOSURE",
			Usage:   "How upstream tools are exposed: \"all\" lists each tool, and \"search\" lists only tool_search and tool_call.",
			Allowed: []string{ExposureAll, ExposureSearch},
			field:   func(c *Config) any { return &c.Gateway.Exposure },
		},
		{
			Name: "gateway.project", Kind: KindText, Flag: "gateway-project", Env: "GUIDEWAY_GATEWAY_PROJECT",
			Usage: "Project whose upstreams are exposed; all of them by default.",
			field: func(c *Config) any { return &c.Gateway.Project },
		},
		{
			Name: "gateway.callsPerMinute", Kind: KindCount, Flag: "gateway-calls-per-minute", Env: "GUIDEWAY_GATEWAY_CALLS_PER_MINUTE",
			Usage: "Maximum calls to upstreams by one client in a minute; 0 means no limit.",
			field: func(c *Config) any { return &c.Gateway.CallsPerMinute },
		},
		{
			Name: "gateway.health", Kind: KindDuration, Flag: "gateway-health", Env: "GUIDEWAY_GATEWAY_HEALTH",
			Usage: "How often running upstreams are pinged and failed ones retried, such as \"30s\", at least 1s; 0 means never.",
			raise: func(d time.Duration) time.Duration {
				if d == 0 {
					return 0
				}
				return max(d, time.Second)
			},
			field: func(c *Config) any { return &c.Gateway.Health },
		},
	}
}
