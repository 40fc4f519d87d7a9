package cli

import "github.com/spf13/cobra"

func newInstallCmd(host *Host) *cobra.Command {
	return &cobra.Command{Use: "install"}
}
