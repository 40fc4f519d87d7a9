package cli

import (
	"context"
	"fmt"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/spf13/cobra"
)

// doctorOptions is the command line of guideway doctor.
type doctorOptions struct {
	app  *app
	Lint bool
	// SelfTest checks the program in an empty directory in place of the installation.
	SelfTest bool
	JSON     bool
}

func newDoctorCmd(a *app, run func(context.Context, *doctorOptions) error) *cobra.Command {
	o := &doctorOptions{app: a}
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check this installation and say how to mend it",
		Long: `Check this installation: directories, settings and where each came from, sources,
definitions, the store of runs with its key and heads, checkpoints, the git program, the
sandbox of scripts, the token, the server, and the clients that start Guideway. Every check is ok, warn or fail, with the next step. The exit code is 1 if any fails.

With --selftest try the program out instead, in a directory of its own that is removed
again: the bundled definitions load, a script runs in its sandbox, a client begins a run
over standard input and output, the server is killed, and another server finds the run.
Your settings and files are not read.`,
		Example: "  guideway doctor\n  guideway doctor --lint\n  guideway doctor --selftest\n  guideway doctor --json",
		Args:    noArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), o) },
	}
	cmd.Flags().BoolVar(&o.Lint, "lint", false, "look for what is legal in definitions and most likely not meant, too")
	cmd.Flags().BoolVar(&o.SelfTest, "selftest", false, "try the program out in an empty directory; read no file of yours")
	cmd.Flags().BoolVar(&o.JSON, "json", false, "answer in JSON")
	cmd.MarkFlagsMutuallyExclusive("lint", "selftest")
	return cmd
}

// The outcomes of a check.
const (
	checkOK   = "ok"
	checkWarn = "warn"
	checkFail = "fail"
)

// check is one thing that doctor looked at.
type check struct {
	Name    string `json:"name"`
	Status  string `json:"status"`
	Message string `json:"message"`
	// Fix is the next step; empty where all is well.
	Fix string `json:"fix,omitempty"`
	// Diagnostics are the findings behind the outcome.
	Diagnostics []guideway.Diagnostic `json:"diagnostics,omitempty"`
}

// doctorAnswer is the answer of guideway doctor --json.
type doctorAnswer struct {
	Status   string          `json:"status"`
	Build    build           `json:"build"`
	Settings []doctorSetting `json:"settings"`
	Checks   []check         `json:"checks"`
}

// doctorSetting is a setting that is in force.
type doctorSetting struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Origin string `json:"origin"`
}

func (a *doctorAnswer) add(checks ...check) {
	for _, c := range checks {
		a.Checks = append(a.Checks, c)
		if c.Status == checkFail || c.Status == checkWarn && a.Status == checkOK {
			a.Status = c.Status
		}
	}
}

func runDoctor(ctx context.Context, o *doctorOptions) error {
	host := o.app.host
	answer := doctorAnswer{Status: checkOK, Build: thisBuild(), Settings: []doctorSetting{}}
	var err error
	if o.SelfTest {
		err = runSelfTest(ctx, &answer, host.Getenv)
	} else {
		err = o.checkInstallation(ctx, &answer)
	}
	if err != nil {
		return err
	}
	if o.JSON {
		if err := writeJSON(host.Out, answer); err != nil {
			return err
		}
	} else {
		answer.write(host)
	}
	if answer.Status == checkFail {
		return silentError{exitFailed}
	}
	return nil
}

// checkInstallation adds the settings and all checks of them, of files and of services.
func (o *doctorOptions) checkInstallation(ctx context.Context, answer *doctorAnswer) error {
	// What the settings say is still in force where some of them are wrong.
	cfg, err := o.app.load()
	for _, v := range cfg.Values() {
		answer.Settings = append(answer.Settings, doctorSetting{Name: v.Name, Value: v.Text, Origin: v.Origin.String()})
	}
	answer.add(checkSettings(cfg, err))
	answer.add(checkDirectories(cfg)...)
	definitions, err := o.checkDefinitions(ctx, cfg)
	if err != nil {
		return err
	}
	answer.add(definitions...)
	answer.add(o.checkRuns(ctx, cfg)...)
	answer.add(o.checkMachineRuns(ctx, cfg)...)
	answer.add(o.checkCheckpoints(ctx, cfg)...)
	answer.add(o.checkUpstreams(cfg)...)
	answer.add(checkGit(ctx, cfg), checkSandbox(ctx), checkToken(cfg), checkServer(ctx, cfg))
	answer.add(checkClients(ctx, o.app.host)...)
	return nil
}

// checkSettings tells of the configuration file, the environment and flags.
func checkSettings(cfg *config.Config, err error) check {
	c := check{Name: "settings", Status: checkOK, Message: "defaults; there is no configuration file"}
	if cfg.File != "" {
		c.Message = "read from " + cfg.File
	}
	if len(cfg.Warnings) > 0 {
		c.Status, c.Diagnostics = checkWarn, cfg.Warnings
		c.Message += fmt.Sprintf(", %s", plural(len(cfg.Warnings), "warning", "warnings"))
	}
	if err != nil {
		problems := config.AsProblems(err)
		c.Status, c.Diagnostics = checkFail, append(problems, c.Diagnostics...)
		c.Message = plural(len(problems), "problem", "problems")
		if len(problems) == 0 {
			c.Message = err.Error()
		}
		c.Fix = "mend what is listed; commands that need the settings refuse to work until then"
	}
	return c
}

func (a *doctorAnswer) write(host *Host) {
	s := host.outStyles()
	fmt.Fprintf(host.Out, "%s\n", a.Build)
	if len(a.Settings) > 0 {
		a.writeSettings(host, s)
	}
	fmt.Fprintf(host.Out, "\n%s\n", s.bold("Checks"))
	counts := map[string]int{}
	names := 0
	for _, c := range a.Checks {
		names = max(names, cells(c.Name))
	}
	for _, c := range a.Checks {
		counts[c.Status]++
		fmt.Fprintf(host.Out, "%s  %-*s  %s\n", checkMark(s, c.Status), names, c.Name, oneLine(c.Message))
		writeDiagnostics(indented{host.Out}, c.Diagnostics, s)
		if c.Fix != "" {
			fmt.Fprintf(host.Out, "      next: %s\n", oneLine(c.Fix))
		}
	}
	fmt.Fprintf(host.Out, "\n%d ok, %d warn, %d fail\n", counts[checkOK], counts[checkWarn], counts[checkFail])
}

// writeSettings writes the settings as a table.
func (a *doctorAnswer) writeSettings(host *Host, s styles) {
	fmt.Fprintf(host.Out, "\n%s\n", s.bold("Settings"))
	t := table{flexible: 1}
	t.add("NAME", "VALUE", "FROM")
	for _, v := range a.Settings {
		value := oneLine(v.Value)
		if value == "" {
			value = "-"
		}
		t.add(v.Name, value, v.Origin)
	}
	t.write(host.Out, host.terminalWidth(), s)
}

func checkMark(s styles, status string) string {
	padded := fmt.Sprintf("%-4s", status)
	switch status {
	case checkOK:
		return s.green(padded)
	case checkWarn:
		return s.yellow(padded)
	default:
		return s.red(padded)
	}
}
