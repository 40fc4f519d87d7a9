package server

import (
	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/hooks/sandbox/worker"
	"github.com/spf13/cobra"
)

// NewScriptWorkerCmd returns the hidden command that guideway starts to run scripts in a
// restricted process.
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
