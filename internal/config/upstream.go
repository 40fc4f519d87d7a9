package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
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
	// Tools restricts all calls of clients; nil restricts none.
	Tools *ToolPolicy
	// ClientMetadata is the URL of the client ID metadata document, which is the OAuth client
	// id of logins. It may be empty.
	ClientMetadata string
	// QuestionTime is how long a held call waits for a person, and ApprovalTime how long its
	// approval can be used.
	QuestionTime, ApprovalTime time.Duration
	// LargeResult is the size in bytes above which a result is stored and the client gets a
	// summary. Zero means never.
	LargeResult int64
}

// ToolPolicy restricts the calls of tools.
type ToolPolicy struct {
	// Allow lists the allowed calls. All are allowed if it is nil, and none if it is empty.
	Allow []ToolRule `json:"allow,omitzero"`
	// Deny lists calls that are refused, and Hold calls that wait for the approval of a person.
	Deny []ToolRule `json:"deny,omitempty"`
	Hold []ToolRule `json:"hold,omitempty"`
}

// ToolRule describes calls of tools. A call matches if it matches every member that is set.
type ToolRule struct {
	// Tool is the name by which clients call the tool; * in it matches any text.
	Tool string `json:"tool"`
	// Annotations are hints of the tool: readOnly, destructive, idempotent, openWorld.
	Annotations map[string]bool `json:"annotations,omitempty"`
	// Arguments are patterns of arguments, by name or JSON pointer.
	Arguments map[string]string `json:"arguments,omitempty"`
}

// hints are the names of annotations in rules.
func hints() []string { return []string{"readOnly", "destructive", "idempotent", "openWorld"} }

// readTools reads the policy at an offset.
func (f *fileReader) readTools(at int) {
	if f.data[at] != '{' {
		f.reportError(f.diagnosticAt("config-type", at, "/gateway/tools"), newError(`write an object, such as {"hold": ["github__merge_*"]}`, "\"gateway.tools\" is %s", kindOf(f.skipValue())))
		return
	}
	p := &ToolPolicy{}
	f.config.Gateway.Tools = p
	lists := map[string]*[]ToolRule{"allow": &p.Allow, "deny": &p.Deny, "hold": &p.Hold}
	f.nextToken()
	for f.dec.More() {
		keyAt := f.nextOffset()
		key, _ := f.nextToken().(string)
		valueAt, pointer := f.nextOffset(), "/gateway/tools/"+escapePointer(key)
		switch list := lists[key]; {
		case list == nil:
			f.skipValue()
			f.reportError(f.diagnosticAt("config-unknown-key", keyAt, pointer), newError("use one of: allow, deny, hold", "%q is not a setting", "gateway.tools."+key))
		case *list != nil:
			f.skipValue()
			f.reportError(f.diagnosticAt("config-duplicate", keyAt, pointer), newError("remove one of the two entries", "%q is set twice", "gateway.tools."+key))
		default:
			*list = f.readToolRules(valueAt, pointer, "gateway.tools."+key)
		}
	}
	f.nextToken()
}

// readToolRules reads the list of rules at an offset. Each is the name of a tool or an
// object.
func (f *fileReader) readToolRules(at int, pointer, name string) []ToolRule {
	if f.data[at] != '[' {
		f.reportError(f.diagnosticAt("config-type", at, pointer),
			newError(`write a list, such as ["github__merge_*", {"tool": "*", "annotations": {"destructive": true}}]`, "%q is %s", name, kindOf(f.skipValue())))
		return nil
	}
	rules := []ToolRule{}
	f.nextToken()
	for i := 0; f.dec.More(); i++ {
		valueAt := f.nextOffset()
		var text json.RawMessage
		_ = f.dec.Decode(&text)
		rule, offset, invalid := readToolRule(text, fmt.Sprintf("rule %d of %q", i+1, name))
		if invalid != nil {
			f.reportError(f.diagnosticAt("config-type", valueAt+offset, fmt.Sprintf("%s/%d", pointer, i)), invalid)
			continue
		}
		rules = append(rules, rule)
	}
	f.nextToken()
	return rules
}

// readToolRule reads one rule. of is its description in messages.
func readToolRule(text []byte, of string) (rule ToolRule, offset int, invalid *settingError) {
	if json.Unmarshal(text, &rule.Tool) != nil {
		if offset, invalid = decodeEntry(text, &rule, of); invalid != nil {
			return rule, offset, invalid
		}
	}
	if rule.Tool == "" {
		return rule, 0, newError(`write the name of a tool, such as "github__merge_*"`, "%s names no tool", of)
	}
	for name := range rule.Annotations {
		if !slices.Contains(hints(), name) {
			return rule, 0, newError("use one of: "+strings.Join(hints(), ", "), "%s has the unknown annotation %q", of, name)
		}
	}
	return rule, 0, nil
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
	// Timeout is the maximum time of a call without progress; if zero, a minute, and five for a
	// call whose client requests no progress. MaxTime is
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

// The grants of UpstreamOAuth.
const (
	// GrantCredentials requests tokens with a client id and a secret (RFC 6749, 4.4).
	GrantCredentials = "client_credentials"
	// GrantCode requests tokens after a person has logged in (RFC 6749, 4.1).
	GrantCode = "authorization_code"
)

// UpstreamOAuth requests tokens.
type UpstreamOAuth struct {
	// Grant is GrantCredentials or GrantCode. If it is empty, it is GrantCredentials with a
	// client secret and GrantCode without one.
	Grant string `json:"grant,omitempty"`
	// TokenURL is the token endpoint. If it is empty, the endpoint is read from the
	// metadata of Issuer (RFC 8414). If Issuer is empty too, the server's metadata names
	// the issuer (RFC 9728), which must be on the server's own host.
	TokenURL     string   `json:"tokenUrl,omitempty"`
	Issuer       string   `json:"issuer,omitempty"`
	ClientID     string   `json:"clientId,omitempty"`
	ClientSecret string   `json:"clientSecret,omitempty"`
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
	// Name, Title and Description replace the name, the title and the description that the
	// upstream declares for the tool.
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
		return durationError(data, reflect.TypeFor[UpstreamTime]())
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return durationError(data, reflect.TypeFor[UpstreamTime]())
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
	readEntries(f, at, "upstream", "upstream", "write an object of upstreams by their names", func(name, of string, origin Origin, u *Upstream) *settingError {
		u.Name, u.Origin = name, origin
		if u.CallsPerMinute < 0 || u.ToolCallsPerMinute < 0 {
			return newError("write a positive number, or remove the limit", `%s has a negative limit: "callsPerMinute" is %d and "toolCallsPerMinute" is %d`, of, u.CallsPerMinute, u.ToolCallsPerMinute)
		}
		for _, tool := range slices.Sorted(maps.Keys(u.Tools)) {
			rule := u.Tools[tool]
			if err := rule.Check(); err != nil {
				return newError(guideway.ErrorFix(err), "the tool %q of %s: %v", tool, of, err)
			}
		}
		f.config.Upstreams = append(f.config.Upstreams, *u)
		return nil
	})
}
