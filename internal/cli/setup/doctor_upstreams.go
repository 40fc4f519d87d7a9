package setup

import "github.com/guideway-dev/guideway/internal/cli/server"

import (
	"fmt"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/config"
	gatewayadmin "github.com/guideway-dev/guideway/internal/gateway/admin"
	"github.com/guideway-dev/guideway/internal/gateway/upstream"
)

// checkUpstreams checks the upstreams without starting them: one check for all, and one for
// each that needs attention.
func (o *DoctorOptions) checkUpstreams(cfg *config.Config) []Check {
	if len(cfg.Upstreams) == 0 {
		return nil
	}
	all := Check{Name: "upstreams", Status: CheckOK, Message: fmt.Sprintf("%d configured", len(cfg.Upstreams))}
	counts := map[string]int{}
	var checks []Check
	managed := server.NewOfflineUpstreamAdmin(o.app, cfg)
	for _, u := range cfg.Upstreams {
		row := managed.Summarize(u)
		state := server.FormatUpstreamState(&row)
		c := Check{Name: "upstream " + u.Name, Status: CheckWarn, Message: state, Fix: "guideway upstream approve " + u.Name}
		switch {
		case row.Problem != "":
			c.Status, c.Fix = CheckFail, "fix the upstream in "+u.Origin.String()
			state = "invalid"
		case u.Disabled:
			counts[state]++
			continue
		case row.Waiting > 0:
			state = "waiting for approval"
		default:
			counts[state]++
			secrets := upstream.Secrets{Getenv: o.app.Host.Getenv, Keychain: skipKeychain}
			err := secrets.Check(gatewayadmin.EntryOf(u).Spec)
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
	for _, state := range []string{"ready", "not queried yet", "waiting for approval", "disabled", "invalid"} {
		if n := counts[state]; n > 0 {
			all.Message += fmt.Sprintf(", %d %s", n, state)
		}
	}
	if !cfg.OffersUpstreams() {
		all.Message += `; agents see upstreams only on servers started with the toolset "gateway", which is disabled in the settings`
	}
	all.Message = strings.Replace(all.Message, "configured, ", "configured: ", 1)
	return append([]Check{all}, checks...)
}

// skipKeychain replaces the system keychain, which may ask the user for permission: the
// secret is not needed here.
func skipKeychain(string) (string, error) { return "in the keychain", nil }
