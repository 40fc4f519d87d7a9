package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/guideway-dev/guideway/internal/spelling"
)

// Gateway says how other MCP servers are offered.
type Gateway struct {
	// Exposure is ExposureAll or ExposureSearch.
	Exposure string
	// Project leaves only the upstreams of one project; empty is all.
	Project string
	// CallsPerMinute bounds the calls of one client; zero is no bound.
	CallsPerMinute int
	// Health is how often upstreams that run are pinged; zero is never.
	Health time.Duration
}

// How the tools of upstreams are offered.
const (
	// ExposureAll offers every tool.
	ExposureAll = "all"
	// ExposureSearch offers a tool to find them and a tool to call them.
	ExposureSearch = "search"
)

// Upstream is another MCP server.
type Upstream struct {
	Name string `json:"-"`

	// Command, Args, Dir and Env start a server on standard input and output.
	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Dir     string            `json:"dir,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
	// URL, Transport and Headers reach one over HTTP.
	URL       string            `json:"url,omitempty"`
	Transport string            `json:"transport,omitempty"`
	Headers   map[string]string `json:"headers,omitempty"`
	Bearer    string            `json:"bearer,omitempty"`
	OAuth     *UpstreamOAuth    `json:"oauth,omitempty"`

	// Protocol pins the protocol version.
	Protocol string `json:"protocol,omitempty"`
	// Timeout is how long a call may show no progress, MaxTime how long it may
	// take.
	Timeout UpstreamTime `json:"timeout,omitempty"`
	MaxTime UpstreamTime `json:"maxTime,omitempty"`

	Disabled bool   `json:"disabled,omitempty"`
	Project  string `json:"project,omitempty"`
	// Prefix stands before the names of its tools, with two underscores; a
	// given empty one leaves the names as they are.
	Prefix *string                 `json:"prefix,omitempty"`
	Tools  map[string]UpstreamTool `json:"tools,omitempty"`
	// Sessions is "auto", "shared" or "client".
	Sessions string `json:"sessions,omitempty"`
	// Pins is "first-use", "approve" or "off".
	Pins               string `json:"pins,omitempty"`
	CallsPerMinute     int    `json:"callsPerMinute,omitempty"`
	ToolCallsPerMinute int    `json:"toolCallsPerMinute,omitempty"`

	// Origin is where it is configured.
	Origin Origin `json:"-"`
}

// UpstreamOAuth gets tokens for an upstream by client credentials.
type UpstreamOAuth struct {
	// TokenURL is where tokens are got; Issuer, or else the server itself, says where
	// that is if it is empty.
	TokenURL     string   `json:"tokenUrl,omitempty"`
	Issuer       string   `json:"issuer,omitempty"`
	ClientID     string   `json:"clientId"`
	ClientSecret string   `json:"clientSecret"`
	Scopes       []string `json:"scopes,omitempty"`
	Resource     string   `json:"resource,omitempty"`
}

// UpstreamTool changes one tool of an upstream.
type UpstreamTool struct {
	Hide        bool   `json:"hide,omitempty"`
	Name        string `json:"name,omitempty"`
	Description string `json:"description,omitempty"`
}

// UpstreamTime is a time such as "90s".
type UpstreamTime time.Duration

// UnmarshalJSON implements json.Unmarshaler.
func (t *UpstreamTime) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return errors.New(`a time is a text such as "90s"`)
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return fmt.Errorf(`%q is not a time such as "90s"`, text)
	}
	*t = UpstreamTime(d)
	return nil
}

// MarshalJSON implements json.Marshaler.
func (t UpstreamTime) MarshalJSON() ([]byte, error) {
	return json.Marshal(time.Duration(t).String())
}

// upstreams reads the upstreams of the file. Whether one can be reached as it is
// described is judged where it is used.
func (f *fileReader) upstreams(at int) {
	if f.data[at] != '{' {
		f.fault(f.at("config-type", at, "/upstreams"), faultf("write an object of upstreams by their names", `"upstreams" holds %s`, kindOf(f.skip())))
		return
	}
	f.token()
	seen := map[string]bool{}
	for f.dec.More() {
		keyAt := f.next()
		name, _ := f.token().(string)
		valueAt := f.next()
		var text json.RawMessage
		_ = f.dec.Decode(&text)
		pointer := "/upstreams/" + escapePointer(name)
		if seen[name] {
			f.fault(f.at("config-duplicate", keyAt, pointer), faultf("remove one of the two", "the upstream %q is given twice", name))
			continue
		}
		seen[name] = true
		u := Upstream{Name: name, Origin: Origin{Kind: OriginFile, Name: fmt.Sprintf("%s:%d", f.path, f.at("", keyAt, "").Line)}}
		if offset, problem := decodeUpstream(text, &u); problem != nil {
			f.fault(f.at("config-upstream", valueAt+offset, pointer), problem)
			continue
		}
		f.config.Upstreams = append(f.config.Upstreams, u)
	}
	f.token()
}

// decodeUpstream reads one upstream; offset is where in its text the problem is,
// as far as that is known.
func decodeUpstream(text []byte, u *Upstream) (offset int, problem *fault) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	err := dec.Decode(u)
	if err == nil {
		if u.CallsPerMinute < 0 || u.ToolCallsPerMinute < 0 {
			return 0, faultf("leave it out for no bound", "the upstream %q has a bound below zero", u.Name)
		}
		return 0, nil
	}
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		return max(0, int(kind.Offset)-1), faultf("write "+article(kind.Type.String()), "%q of the upstream %q holds a %s", kind.Field, u.Name, kind.Value)
	}
	if field, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		name, _ := strconv.Unquote(field)
		fix := "use one of: " + strings.Join(upstreamFields(), ", ")
		if near := spelling.Closest(name, upstreamFields()); near != "" {
			fix = fmt.Sprintf("did you mean %q?", near)
		}
		return max(0, bytes.Index(text, []byte(field))), &fault{message: fmt.Sprintf("%s of the upstream %q is not a setting", field, u.Name), fix: fix}
	}
	return 0, faultf("mend it", "the upstream %q: %v", u.Name, err)
}

func article(kind string) string {
	switch {
	case strings.HasPrefix(kind, "[]"):
		return "a list of strings"
	case strings.HasPrefix(kind, "map"), strings.Contains(kind, "."):
		return "an object"
	case strings.HasPrefix(kind, "int"):
		return "a whole number"
	case strings.HasPrefix(kind, "float"):
		return "a number"
	case kind == "bool":
		return "true or false"
	}
	return "a string"
}

// upstreamFields are the settings of an upstream.
func upstreamFields() []string {
	return []string{
		"command", "args", "dir", "env", "url", "transport", "headers", "bearer", "oauth", "protocol", "timeout", "maxTime",
		"disabled", "project", "prefix", "tools", "sessions", "pins", "callsPerMinute", "toolCallsPerMinute",
	}
}

func gatewaySettings() []setting {
	return []setting{
		{
			Setting: Setting{
				Name: "gateway.exposure", Kind: KindText, Flag: "gateway-exposure", Env: "GUIDEWAY_GATEWAY_EXPOSURE",
				Usage:   "How the tools of upstreams are offered: all of them, or a search for them.",
				Allowed: []string{ExposureAll, ExposureSearch},
			},
			set:  func(c *Config, v value) { c.Gateway.Exposure = v.text },
			text: func(c *Config) string { return c.Gateway.Exposure },
		},
		{
			Setting: Setting{
				Name: "gateway.project", Kind: KindText, Flag: "gateway-project", Env: "GUIDEWAY_GATEWAY_PROJECT",
				Usage: "Project whose upstreams alone are offered; all of them by default.",
			},
			set:  func(c *Config, v value) { c.Gateway.Project = v.text },
			text: func(c *Config) string { return c.Gateway.Project },
		},
		{
			Setting: Setting{
				Name: "gateway.callsPerMinute", Kind: KindCount, Flag: "gateway-calls-per-minute", Env: "GUIDEWAY_GATEWAY_CALLS_PER_MINUTE",
				Usage: "Calls to upstreams that one client may make in a minute; 0 is no bound.",
			},
			set:  func(c *Config, v value) { c.Gateway.CallsPerMinute = int(v.number) },
			text: func(c *Config) string { return strconv.Itoa(c.Gateway.CallsPerMinute) },
		},
		{
			Setting: Setting{
				Name: "gateway.health", Kind: KindDuration, Flag: "gateway-health", Env: "GUIDEWAY_GATEWAY_HEALTH",
				Usage: "How often upstreams that run are pinged, and failed ones tried again, such as \"30s\"; 0 is never.",
			},
			set: func(c *Config, v value) {
				c.Gateway.Health = v.duration
				if v.duration > 0 {
					c.Gateway.Health = max(v.duration, time.Second)
				}
			},
			text: func(c *Config) string { return c.Gateway.Health.String() },
		},
	}
}
