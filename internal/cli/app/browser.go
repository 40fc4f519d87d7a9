package app

import (
	"context"
	"os/exec"
	"runtime"

	"github.com/guideway-dev/guideway"
)

// StartBrowser opens an http or https URL in the default browser, without a shell.
func StartBrowser(ctx context.Context, link string) error {
	opener := []string{"xdg-open"}
	switch runtime.GOOS {
	case "darwin":
		opener = []string{"open"}
	case "windows":
		opener = []string{"rundll32", "url.dll,FileProtocolHandler"}
	}
	cmd := exec.CommandContext(ctx, opener[0], append(opener[1:], link)...) //nolint:gosec // G204: a checked URL is one argument
	if err := cmd.Run(); err != nil {
		return guideway.Errorf(guideway.CodeUnavailable, "cannot open the browser with %s: %w", opener[0], err).WithFix("open the printed link in a browser")
	}
	return nil
}
