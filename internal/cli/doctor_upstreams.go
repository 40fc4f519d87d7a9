package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/gateway/manage"
	"github.com/guideway-dev/guideway/internal/mcpserver"
	"github.com/guideway-dev/guideway/internal/upstream"
)

// checkUpstreams tells of other MCP servers, without starting one: all in a line, and
// each that somebody has to look at.
func (o *doctorOptions) checkUpstreams(cfg *config.Config) []check {
	if len(cfg.Upstreams) == 0 {
		return nil
	}
	all := check{Name: "upstreams", Status: checkOK, Message: fmt.Sprintf("%d configured", len(cfg.Upstreams))}
	counts := map[string]int{}
	var checks []check
	managed := o.app.managed(cfg)
	for _, u := range cfg.Upstreams {
		row := managed.Summarize(u)
		state := stateText(&row)
		c := check{Name: "upstream " + u.Name, Status: checkWarn, Message: state, Fix: "guideway upstream approve " + u.Name}
		switch {
		case row.Problem != "":
			c.Status, c.Fix = checkFail, "mend it in "+u.Origin.String()
			state = "wrong"
		case u.Disabled:
			counts[state]++
			continue
		case row.Waiting > 0:
			state = "waiting for approval"
		default:
			counts[state]++
			secrets := upstream.Secrets{Getenv: o.app.host.Getenv, Keychain: unasked}
			err := secrets.Check(manage.EntryOf(u).Spec)
			if err == nil {
				continue
			}
			c.Message, c.Fix = err.Error(), guideway.ErrorFix(err)
			checks = append(checks, c)
			continue
		}
		counts[state]++
		checks = append(checks, c)
	}
	for _, state := range []string{"ready", "not asked yet", "waiting for approval", "disabled", "wrong"} {
		if n := counts[state]; n > 0 {
			all.Message += fmt.Sprintf(", %d %s", n, state)
		}
	}
	if !slices.Contains(cfg.Toolsets, mcpserver.ToolsetGateway) {
		all.Message += `; the toolset "gateway" is off in the settings, so that agents see them only where a server is started with it`
	}
	all.Message = strings.Replace(all.Message, "configured, ", "configured: ", 1)
	return append([]check{all}, checks...)
}

// unasked stands for the system's keychain, which may ask the person: that is for
// when the secret is needed.
func unasked(string) (string, error) { return "in the keychain", nil }
