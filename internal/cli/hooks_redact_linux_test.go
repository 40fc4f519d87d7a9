package cli

import (
	"encoding/json"
	"errors"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/gateway/upstream/upstreamtest"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestRedactedEverywhere checks redact-secrets in a running server with a real upstream, for
// clients of both protocol versions, over HTTP and through guideway connect: it redacts texts,
// structured content, names of members, tool errors, errors of the protocol with their data,
// progress messages, resources, prompts and credentials in addresses. Without the graph the
// same requests return the secrets.
func TestRedactedEverywhere(t *testing.T) {
	t.Parallel()
	const key, address, password = "AKIAABCDEFGHIJKLMNOP", "postgres://ann:p4ssw0rdp4ss@db.example/x", "hunter2hunter2"
	const safeAddress = "postgres://ann:[redacted]@db.example/x"
	d := newHookProject(t)
	d.addTestUpstream(filepath.Join(t.TempDir(), "count"), upstreamtest.Hostile)
	secrets := []string{key, "p4ssw0rdp4ss", password}
	read := func(c *sdkClient, text string) (string, error) {
		result, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "note://text/" + url.PathEscape(text)})
		if err != nil {
			return "", err
		}
		return result.Contents[0].Text, nil
	}
	for _, tt := range []struct{ redacts, command string }{{"", "hooks list"}, {"redact", "hooks enable redact-secrets"}} {
		d.wantCommand(app.ExitOK, "", tt.command)
		s := d.startServer("127.0.0.1:0")
		for _, version := range []string{"2025-11-25", "2026-07-28"} {
			for _, bridged := range []bool{false, true} {
				c := d.connectVersion(s, version, bridged)
				call := func(tool, text string) (string, error) {
					params := &mcp.CallToolParams{Name: "one__" + tool, Arguments: map[string]any{"text": text}}
					params.SetProgressToken("p")
					result, err := c.CallTool(t.Context(), params)
					answer, _ := json.Marshal(result) // a result always marshals
					var failed *jsonrpc.Error
					if errors.As(err, &failed) {
						return failed.Message + " " + string(failed.Data), nil
					}
					return string(answer), err
				}
				for _, each := range []struct {
					name, redacted string
					request        func() (string, error)
				}{
					{"text", "a [redacted] b", func() (string, error) { return call("echo", "a "+key+" b") }},
					{"address", safeAddress, func() (string, error) { return call("echo", address) }},
					{"structured content", `"password":"[redacted]"`, func() (string, error) {
						return call("raw", `{"content":[],"structuredContent":{"password":"`+password+`"}}`)
					}},
					{"name of a member", `"[redacted]":{"n":1}`, func() (string, error) {
						return call("raw", `{"content":[],"structuredContent":{"`+key+`":{"n":1}}}`)
					}},
					{"tool error", `"isError":true`, func() (string, error) {
						return call("raw", `{"isError":true,"content":[{"type":"text","text":"cannot use `+key+`"}]}`)
					}},
					{"link", "ann:[redacted]@db.example/x", func() (string, error) {
						return call("raw", `{"content":[{"type":"resource_link","name":"n","uri":"`+address+`"}]}`)
					}},
					{"error", `no access with [redacted] {"password":"[redacted]","url":"` + safeAddress + `"}`, func() (string, error) {
						return call("rawfail", `{"code":-32000,"message":"no access with `+key+`","data":{"password":"`+password+`","url":"`+address+`"}}`)
					}},
					{"progress", "at [redacted]", func() (string, error) {
						if answer, err := call("slow", "at "+key); err != nil || !strings.Contains(answer, "done at ") {
							return answer, err
						}
						waitFor(t, func() bool { return c.hasEvent("progress: at "+key) || c.hasEvent("progress: at [redacted]") })
						return strings.Join(c.eventsOf("progress: at"), " "), nil
					}},
					{"resource", "the note [redacted]", func() (string, error) { return read(c, "the note "+key) }},
					{"prompt", safeAddress, func() (string, error) {
						result, err := c.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "one__greet", Arguments: map[string]string{"who": address}})
						answer, _ := json.Marshal(result)
						return string(answer), err
					}},
				} {
					got, err := each.request()
					leaks := false
					for _, secret := range secrets {
						leaks = leaks || strings.Contains(got, secret)
					}
					if err != nil || leaks == (tt.redacts != "") || tt.redacts != "" && !strings.Contains(got, each.redacted) {
						t.Errorf("%s, %s: %s, %v", c.name, each.name, got, err)
					}
				}
			}
		}
		s.killProcess()
	}
}
