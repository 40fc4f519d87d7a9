package server

import (
	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/hooks/sandbox/worker"
	"github.com/spf13/cobra"
)

// NewScriptWorkerCmd is what the program starts itself as, to run scripts in a
// process that can do nothing else. People have no use for it.
func NewScriptWorkerCmd(host *app.Host) *cobra.Command {
	return &cobra.Command{
		Use:    "script-worker",
		Short:  "Run scripts for another guideway process",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return worker.Main(host.In, host.Out)
		},
	}
}
