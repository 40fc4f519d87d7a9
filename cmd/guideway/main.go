// Command guideway gives AI agents workflows that they cannot skip.
package main

import (
	"os"

	"github.com/guideway-dev/guideway/internal/cli"
	"github.com/guideway-dev/guideway/internal/cli/app"
)

func main() { os.Exit(cli.Main(os.Args[1:], app.NewSystemHost())) }
