package cli

import (
	"github.com/guideway-dev/guideway/internal/script/worker"
	"github.com/spf13/cobra"
)

// newScriptWorkerCmd is what the program starts itself as, to run scripts in a
// process that can do nothing else. People have no use for it.
func newScriptWorkerCmd(host *Host) *cobra.Command {
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
