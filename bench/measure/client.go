package measure

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// ConnectStdio starts "guideway mcp" with a home directory below the temporary directory,
// and connects to it. The caller must close the session.
func (o *Options) ConnectStdio(ctx context.Context, args ...string) (*mcp.ClientSession, *exec.Cmd, error) {
	program, err := o.Program(ctx)
	if err != nil {
		return nil, nil, err
	}
	home, err := os.MkdirTemp(o.Dir, "home-")
	if err != nil {
		return nil, nil, fmt.Errorf("create a home directory: %w", err)
	}
	cmd := exec.CommandContext(ctx, program, append([]string{"mcp"}, args...)...) //nolint:gosec // G204: the program under measurement
	cmd.Dir, cmd.Env = home, []string{"HOME=" + home, "USERPROFILE=" + home, "APPDATA=" + home, "LOCALAPPDATA=" + home, "PATH=" + os.Getenv("PATH")}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, nil).
		Connect(ctx, &mcp.CommandTransport{Command: cmd, TerminateDuration: 5 * time.Second}, nil)
	if err != nil {
		return nil, nil, fmt.Errorf("connect to guideway mcp: %w", err)
	}
	return session, cmd, nil
}
