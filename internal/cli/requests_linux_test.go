package cli

import (
	"bufio"
	"context"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// A command that runs until it is stopped, such as guideway requests tail, succeeds when
// Ctrl-C or a supervisor ends it.
func TestTailStopsOnSignal(t *testing.T) {
	t.Parallel()
	d, _ := newGatewayProject(t)
	a := d.connectClient("--toolsets", "gateway")
	a.toolNames()
	if got := a.callWithText("one__echo", "hi"); got != "hi" {
		t.Fatal(got)
	}
	a.end()
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "guideway", "requests", "tail", "--json")
		cmd.Env, cmd.Dir = d.environment(), d.host.Dir
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(out).ReadString('\n')
		if err != nil || !strings.Contains(line, `"tool":"echo"`) {
			t.Errorf("the first line is %q, %v", line, err)
		}
		if err := cmd.Process.Signal(sig); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("the command after %v: %v", sig, err)
		}
	}
}
