package execute

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/evidence/execute/runner"
)

// TestExplainSandbox checks that a check keeps its sandbox if only the network cannot be
// blocked.
func TestExplainSandbox(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err       error
		want, not string
	}{
		{fmt.Errorf("the kernel is old, so %w", runner.ErrNetwork), `"network: true"`, `"sandbox: true"`},
		{errors.New("the kernel has no Landlock"), `"sandbox: true"`, `"network: true"`},
	} {
		err := explainSandbox("boxed", c.err)
		if fix := guideway.ErrorFix(err); guideway.ErrorCode(err) != guideway.CodeUnavailable || !strings.Contains(fix, c.want) || strings.Contains(fix, c.not) {
			t.Errorf("%v: the fix is %q", err, fix)
		}
	}
}
