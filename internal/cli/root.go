// Package cli is the command line: it builds the command tree from the packages of the
// commands and runs it.
package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/cli/app"
	attestcmd "github.com/guideway-dev/guideway/internal/cli/attest"
	auditcmd "github.com/guideway-dev/guideway/internal/cli/audit"
	backupcmd "github.com/guideway-dev/guideway/internal/cli/backup"
	callscmd "github.com/guideway-dev/guideway/internal/cli/calls"
	checkpointcmd "github.com/guideway-dev/guideway/internal/cli/checkpoint"
	checkscmd "github.com/guideway-dev/guideway/internal/cli/checks"
	cicmd "github.com/guideway-dev/guideway/internal/cli/ci"
	clienthookcmd "github.com/guideway-dev/guideway/internal/cli/clienthook"
	encryptioncmd "github.com/guideway-dev/guideway/internal/cli/encryption"
	hookscmd "github.com/guideway-dev/guideway/internal/cli/hooks"
	installcmd "github.com/guideway-dev/guideway/internal/cli/install"
	keycmd "github.com/guideway-dev/guideway/internal/cli/key"
	machinecmd "github.com/guideway-dev/guideway/internal/cli/machine"
	notifycmd "github.com/guideway-dev/guideway/internal/cli/notify"
	requestscmd "github.com/guideway-dev/guideway/internal/cli/requests"
	runcmd "github.com/guideway-dev/guideway/internal/cli/run"
	runscmd "github.com/guideway-dev/guideway/internal/cli/runs"
	"github.com/guideway-dev/guideway/internal/cli/server"
	sessioncmd "github.com/guideway-dev/guideway/internal/cli/session"
	setupcmd "github.com/guideway-dev/guideway/internal/cli/setup"
	sourcescmd "github.com/guideway-dev/guideway/internal/cli/sources"
	tokencmd "github.com/guideway-dev/guideway/internal/cli/token"
	upstreamcmd "github.com/guideway-dev/guideway/internal/cli/upstream"
	workflowcmd "github.com/guideway-dev/guideway/internal/cli/workflow"
	"github.com/spf13/cobra"
)

// The groups of commands in the help.
const (
	groupDefinitions = "definitions"
	groupRuns        = "runs"
	groupServe       = "serve"
	groupSetup       = "setup"
)

func newRootCmd(a *app.App) *cobra.Command {
	host := a.Host
	root := &cobra.Command{
		Use:               "guideway",
		Version:           app.Version(),
		SilenceErrors:     true,
		SilenceUsage:      true,
		DisableAutoGenTag: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !host.InTerminal {
				return server.RunMCP(cmd.Context(), a)
			}
			return cmd.Help()
		},
	}
	root.Args = app.RejectUnknownCommand
	root.SetVersionTemplate("guideway {{.Version}}\n")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return app.UsageError{Err: guideway.Errorf(guideway.CodeInvalid, "%w", err).WithFix("%s --help", cmd.CommandPath())}
	})
	a.Flags = app.AddSettingFlags(root.PersistentFlags())
	root.AddGroup(
		&cobra.Group{ID: groupDefinitions, Title: "Workflows:"},
		&cobra.Group{ID: groupRuns, Title: "Runs and their contexts:"},
		&cobra.Group{ID: groupServe, Title: "Agents:"},
		&cobra.Group{ID: groupSetup, Title: "This installation:"},
	)
	addCommands(root, groupDefinitions,
		workflowcmd.NewListCmd(a, workflowcmd.RunList), workflowcmd.NewShowCmd(a, workflowcmd.RunShow), runcmd.NewRunCmd(a, runcmd.RunRun),
		workflowcmd.NewValidateCmd(a, workflowcmd.RunValidate), workflowcmd.NewSchemaCmd(a, workflowcmd.RunSchema), workflowcmd.NewInitCmd(a, workflowcmd.RunInit))
	addCommands(root, groupRuns, runscmd.NewRunsCmd(a), checkscmd.NewChecksCmd(a), attestcmd.NewAttestCmd(a), attestcmd.NewVerifyCmd(a), cicmd.NewCICmd(a), machinecmd.NewMachineCmd(a), sessioncmd.NewSessionsCmd(a), checkpointcmd.NewCheckpointCmd(a), checkpointcmd.NewCleanupCmd(a, checkpointcmd.RunCleanup), checkpointcmd.NewStatsCmd(a), encryptioncmd.NewEncryptionCmd(a), keycmd.NewKeyCmd(a))
	addCommands(root, groupServe, installcmd.NewInstallCmd(host), server.NewMCPCmd(a), server.NewServeCmd(a), setupcmd.NewConnectCmd(a, setupcmd.RunConnect), setupcmd.NewOpenCmd(a, setupcmd.RunOpen), tokencmd.NewTokenCmd(a), auditcmd.NewAuditCmd(a), clienthookcmd.NewClientHookCmd(a), hookscmd.NewHooksCmd(a), upstreamcmd.NewUpstreamCmd(a), requestscmd.NewRequestsCmd(a), callscmd.NewCallsCmd(a), notifycmd.NewNotifyCmd(a))
	addCommands(root, groupSetup, sourcescmd.NewSourcesCmd(a, sourcescmd.RunSources), setupcmd.NewDoctorCmd(a, setupcmd.RunDoctor), backupcmd.NewBackupCmd(a), backupcmd.NewRestoreCmd(a), setupcmd.NewMigrateCmd(a), setupcmd.NewVersionCmd(a, setupcmd.RunVersion))
	root.AddCommand(server.NewScriptWorkerCmd(host))
	addHelp(root)
	addCompletion(root)
	wrapArgErrors(root)
	return root
}

func addCommands(root *cobra.Command, group string, commands ...*cobra.Command) {
	for _, cmd := range commands {
		cmd.GroupID = group
		root.AddCommand(cmd)
	}
}

// wrapArgErrors makes the errors of all argument checks usage errors.
func wrapArgErrors(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				return app.UsageError{Err: err}
			}
			return nil
		}
	}
	for _, child := range cmd.Commands() {
		wrapArgErrors(child)
	}
}

// addCompletion adds the completion command of cobra. A missing or unknown shell is a usage
// error.
func addCompletion(root *cobra.Command) {
	root.SetCompletionCommandGroupID(groupSetup)
	root.InitDefaultCompletionCmd()
	cmd, _, err := root.Find([]string{"completion"})
	if err != nil || cmd == root {
		return
	}
	cmd.Short = "Print the completion script for a shell"
	cmd.Long = "Print the completion script for a shell. The help of each shell, such as\n\"guideway completion bash --help\", describes how to load the script."
	var shells []string
	for _, shell := range cmd.Commands() {
		shells = append(shells, shell.Name())
	}
	cmd.Args = func(_ *cobra.Command, args []string) error {
		what := "a shell is required"
		if len(args) > 0 {
			what = fmt.Sprintf("unknown shell %q", args[0])
		}
		return guideway.Errorf(guideway.CodeInvalid, "%s; the shells are %s", what, strings.Join(shells, ", ")).
			WithFix("guideway completion %s", shells[0])
	}
	cmd.RunE = func(*cobra.Command, []string) error { return nil }
}

// Main runs the command line and returns the exit code.
func Main(args []string, host app.Host) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return Run(ctx, args, host)
}

// Run runs one command line until it ends or ctx is done, and returns the exit code.
func Run(ctx context.Context, args []string, host app.Host) int {
	a := &app.App{Host: &host}
	defer a.Close()
	root := newRootCmd(a)
	if args == nil {
		args = []string{} // cobra would replace nil with the arguments of the process
	}
	root.SetArgs(args)
	root.SetIn(host.In)
	root.SetOut(host.Out)
	root.SetErr(host.Err)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return app.ExitOK
	}
	var quiet app.SilentError
	if errors.As(err, &quiet) {
		return quiet.Code
	}
	fmt.Fprintf(host.Err, "error: %s\n", app.EscapeText(err.Error()))
	if fix := guideway.ErrorFix(err); fix != "" {
		fmt.Fprintf(host.Err, "try: %s\n", app.EscapeText(fix))
	}
	return exitCode(err)
}

func exitCode(err error) int {
	var usage app.UsageError
	switch {
	case errors.As(err, &usage):
		return app.ExitUsage
	case guideway.ErrorCode(err) == guideway.CodeInvalidDefinition:
		return app.ExitInvalid
	default:
		return app.ExitFailed
	}
}
