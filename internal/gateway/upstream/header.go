package upstream

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/guideway-dev/guideway/internal/gateway/jsonrpc"
)

// headerValue encodes a text as a header value: unchanged if possible, otherwise in base64
// as 2026-07-28 requires.
func headerValue(text string) string {
	plain := text == strings.TrimSpace(text) && !strings.HasPrefix(text, encodedPrefix)
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			plain = false
		}
	}
	if plain {
		return text
	}
	return encodedPrefix + base64.StdEncoding.EncodeToString([]byte(text)) + encodedSuffix
}

const (
	encodedPrefix = "=?base64?"
	encodedSuffix = "?="
)

// HeaderText decodes a header value, and reports whether it is valid.
func HeaderText(value string) (string, bool) {
	encoded, encodes := strings.CutPrefix(value, encodedPrefix)
	encoded, ends := strings.CutSuffix(encoded, encodedSuffix)
	if !encodes || !ends {
		return value, true
	}
	text, err := base64.StdEncoding.DecodeString(encoded)
	return string(text), err == nil
}

// HeaderArgument is an argument that a modern server also requires as a header (SEP-2243).
type HeaderArgument struct {
	path   []string
	header string
}

// Limits of the search in a schema for header arguments.
const (
	maxHeaderDepth = 8
	maxHeaders     = 32
)

// schemaPart holds the members of a schema that define header arguments.
type schemaPart struct {
	Header     string                `json:"x-mcp-header"`
	Properties map[string]schemaPart `json:"properties"`
}

// HeaderArguments returns the header arguments in a tool's input schema.
func HeaderArguments(tool json.RawMessage) []HeaderArgument {
	if !strings.Contains(string(tool), "x-mcp-header") {
		return nil
	}
	var of struct {
		Schema schemaPart `json:"inputSchema"`
	}
	if json.Unmarshal(tool, &of) != nil {
		return nil
	}
	var found []HeaderArgument
	var look func(part schemaPart, path []string)
	look = func(part schemaPart, path []string) {
		if part.Header != "" && len(path) > 0 && isHeaderName(part.Header) {
			found = append(found, HeaderArgument{slices.Clone(path), "Mcp-Param-" + part.Header})
		}
		if len(path) == maxHeaderDepth {
			return
		}
		for name, sub := range part.Properties {
			look(sub, append(path, name))
		}
	}
	look(of.Schema, nil)
	if len(found) > maxHeaders {
		return nil
	}
	return found
}

// isHeaderName reports whether a text may be part of a header's name.
func isHeaderName(text string) bool {
	return len(text) <= 64 && !strings.ContainsFunc(text, func(r rune) bool {
		return r != '-' && r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
}

// HeadersOf returns the headers that the arguments of a call require.
func HeadersOf(list []HeaderArgument, arguments json.RawMessage) map[string]string {
	headers := map[string]string{}
	for _, h := range list {
		value := arguments
		for _, name := range h.path {
			members, err := jsonrpc.Members(value)
			if err != nil {
				value = nil
				break
			}
			value = members[name]
		}
		if text, ok := headerText(value); ok {
			headers[h.header] = text
		}
	}
	return headers
}

// HeaderMismatch is the MCP error code for headers that differ from the body.
const HeaderMismatch = -32020

// CheckHeaders compares the headers of a call with its arguments. They must be equal,
// because a proxy between a client and the gateway may make decisions based on the headers.
func CheckHeaders(list []HeaderArgument, header http.Header, arguments json.RawMessage) *jsonrpc.Error {
	if len(list) == 0 {
		return nil
	}
	want := HeadersOf(list, arguments)
	for _, h := range list {
		given, wanted := header.Values(h.header), want[h.header]
		if len(given) == 0 && wanted == "" {
			continue
		}
		got, ok := "", len(given) == 1
		if ok {
			got, ok = HeaderText(given[0])
		}
		if ok && got == wanted {
			continue
		}
		why := "differs from"
		switch {
		case len(given) == 0:
			why = "is missing; it must be equal to"
		case len(given) > 1:
			why = "is repeated; it must be sent once, equal to"
		case !ok:
			why = "is not valid; it must be equal to"
		}
		return &jsonrpc.Error{Code: HeaderMismatch, Message: "the header " + h.header + " " + why + " the argument " + strings.Join(h.path, ".")}
	}
	return nil
}

// headerText formats a string, an integer or a boolean.
func headerText(value json.RawMessage) (string, bool) {
	if len(value) == 0 {
		return "", false
	}
	switch c := value[0]; {
	case c == '"':
		var text string
		err := json.Unmarshal(value, &text)
		return text, err == nil
	case c == 't' || c == 'f':
		return string(value), true
	case c == '-' || c >= '0' && c <= '9':
		number, err := strconv.ParseInt(string(value), 10, 64)
		return strconv.FormatInt(number, 10), err == nil
	}
	return "", false
}

// ParamHeaders returns a function that computes the headers of a tool's calls from their
// arguments, or nil if the tool has no header arguments.
func ParamHeaders(tool json.RawMessage) func(arguments json.RawMessage) map[string]string {
	list := HeaderArguments(tool)
	if len(list) == 0 {
		return nil
	}
	return func(arguments json.RawMessage) map[string]string { return HeadersOf(list, arguments) }
}
