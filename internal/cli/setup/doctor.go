// Package setup implements the commands for this installation: doctor, open, connect,
// migrate, version.
package setup

import "github.com/guideway-dev/guideway/internal/cli/app"

import (
	"context"
	"fmt"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/spf13/cobra"
)

// DoctorOptions is the command line of guideway doctor.
type DoctorOptions struct {
	app  *app.App
	Lint bool
	// SelfTest tests the program in an empty directory instead of the installation.
	SelfTest bool
	JSON     bool
}

func NewDoctorCmd(a *app.App, run func(context.Context, *DoctorOptions) error) *cobra.Command {
	o := &DoctorOptions{app: a}
	cmd := &cobra.Command{
		Use:  "doctor",
		Args: app.NoArgs,
		RunE: app.RunWith(run, o),
	}
	cmd.Flags().BoolVar(&o.Lint, "lint", false, "also check definitions for likely mistakes")
	cmd.Flags().BoolVar(&o.SelfTest, "selftest", false, "test the program in a temporary directory, without reading your files")
	cmd.Flags().BoolVar(&o.JSON, "json", false, "print the result as JSON")
	cmd.MarkFlagsMutuallyExclusive("lint", "selftest")
	return cmd
}

// The statuses of a check.
const (
	CheckOK   = "ok"
	CheckWarn = "warn"
	CheckFail = "fail"
)

// Check is the result of one check.
type Check struct {
	Name    string `json:"name"`
	Status  string `json:"status"`
	Message string `json:"message"`
	// Fix is the next step, if one is known.
	Fix string `json:"fix,omitempty"`
	// Diagnostics are the details of the status.
	Diagnostics []guideway.Diagnostic `json:"diagnostics,omitempty"`
}

// doctorAnswer is the answer of guideway doctor --json.
type doctorAnswer struct {
	Status   string          `json:"status"`
	Build    build           `json:"build"`
	Settings []doctorSetting `json:"settings"`
	Checks   []Check         `json:"checks"`
}

// doctorSetting is the effective value of a setting.
type doctorSetting struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Origin string `json:"origin"`
}

func (a *doctorAnswer) addChecks(checks ...Check) {
	for _, c := range checks {
		a.Checks = append(a.Checks, c)
		if c.Status == CheckFail || c.Status == CheckWarn && a.Status == CheckOK {
			a.Status = c.Status
		}
	}
}

func RunDoctor(ctx context.Context, o *DoctorOptions) error {
	host := o.app.Host
	answer := doctorAnswer{Status: CheckOK, Build: thisBuild(), Settings: []doctorSetting{}}
	var err error
	if o.SelfTest {
		err = runSelfTest(ctx, &answer, host.Getenv)
	} else {
		err = o.checkInstallation(ctx, &answer)
	}
	if err != nil {
		return err
	}
	return host.WriteCheckResult(o.JSON, answer, answer.Status == CheckFail, func() { answer.writeText(host) })
}

// checkInstallation adds the settings and all checks of files and services.
func (o *DoctorOptions) checkInstallation(ctx context.Context, answer *doctorAnswer) error {
	// Valid settings apply even if others are invalid.
	cfg, err := o.app.Load()
	for _, v := range cfg.Values() {
		answer.Settings = append(answer.Settings, doctorSetting{Name: v.Name, Value: v.Text, Origin: v.Origin.String()})
	}
	answer.addChecks(checkSettings(cfg, err))
	answer.addChecks(checkUser(cfg))
	answer.addChecks(checkDirectories(cfg)...)
	definitions, err := o.checkDefinitions(ctx, cfg)
	if err != nil {
		return err
	}
	answer.addChecks(definitions...)
	answer.addChecks(o.checkRuns(ctx, cfg)...)
	answer.addChecks(o.checkMachineRuns(ctx, cfg)...)
	answer.addChecks(o.checkCheckpoints(ctx, cfg)...)
	answer.addChecks(o.checkUpstreams(cfg)...)
	answer.addChecks(o.checkChecksFile(cfg)...)
	answer.addChecks(CheckGit(ctx, cfg), checkSandbox(ctx), checkToken(cfg), CheckServer(ctx, cfg))
	answer.addChecks(checkClients(ctx, o.app.Host)...)
	return nil
}

// checkSettings checks the configuration file, the environment and the flags.
func checkSettings(cfg *config.Config, err error) Check {
	c := Check{Name: "settings", Status: CheckOK, Message: "there is no configuration file"}
	if cfg.File != "" {
		c.Message = "read from " + cfg.File
	}
	if len(cfg.Warnings) > 0 {
		c.Status, c.Diagnostics = CheckWarn, cfg.Warnings
		c.Message += fmt.Sprintf(", %s", app.Plural(len(cfg.Warnings), "warning", "warnings"))
	}
	if err != nil {
		problems := config.DiagnosticsOf(err)
		c.Status, c.Diagnostics = CheckFail, append(problems, c.Diagnostics...)
		c.Message = app.Plural(len(problems), "error", "errors")
		c.Fix = "fix the listed errors; commands that need the settings fail until then"
		if len(problems) == 0 {
			c.Message, c.Fix = err.Error(), guideway.ErrorFix(err)
		}
	}
	return c
}

func (a *doctorAnswer) writeText(host *app.Host) {
	s := host.OutStyles()
	fmt.Fprintf(host.Out, "%s\n", a.Build)
	if len(a.Settings) > 0 {
		a.writeSettings(host, s)
	}
	fmt.Fprintf(host.Out, "\n%s\n", s.Bold("Checks"))
	counts := map[string]int{}
	names := 0
	for _, c := range a.Checks {
		names = max(names, app.TextWidth(c.Name))
	}
	for _, c := range a.Checks {
		counts[c.Status]++
		fmt.Fprintf(host.Out, "%s  %-*s  %s\n", checkMark(s, c.Status), names, c.Name, app.OneLine(c.Message))
		app.WriteDiagnostics(indented{host.Out}, c.Diagnostics, s)
		if c.Fix != "" {
			fmt.Fprintf(host.Out, "      next: %s\n", app.OneLine(c.Fix))
		}
	}
	fmt.Fprintf(host.Out, "\n%d ok, %d warn, %d fail\n", counts[CheckOK], counts[CheckWarn], counts[CheckFail])
}

// writeSettings writes the settings as a table.
func (a *doctorAnswer) writeSettings(host *app.Host, s app.Styles) {
	fmt.Fprintf(host.Out, "\n%s\n", s.Bold("Settings"))
	app.WriteRows(host, app.NewTable(1, "NAME", "VALUE", "FROM"), a.Settings, func(v doctorSetting) []string {
		return []string{v.Name, app.OrDash(app.OneLine(v.Value)), v.Origin}
	})
}

func checkMark(s app.Styles, status string) string {
	padded := fmt.Sprintf("%-4s", status)
	switch status {
	case CheckOK:
		return s.Green(padded)
	case CheckWarn:
		return s.Yellow(padded)
	default:
		return s.Red(padded)
	}
}
