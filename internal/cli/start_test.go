package cli

import (
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// Package initialization allocates almost nothing: patterns are compiled and tables filled
// when they are first needed. Each client starts its own process, so these allocations cost
// time and memory in each.
func TestPackageInitAllocations(t *testing.T) {
	t.Parallel()
	const most = 200 << 10 // 1.1 MB before the patterns and tables were made lazy
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^$")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	total, lines := 0, 0
	var told strings.Builder
	for _, m := range regexp.MustCompile(`(?m)^init (github\.com/guideway-dev/guideway/\S+) .* (\d+) bytes, \d+ allocs$`).FindAllStringSubmatch(string(out), -1) {
		n, err := strconv.Atoi(m[2])
		if err != nil {
			t.Fatal(err)
		}
		if m[1] == "github.com/guideway-dev/guideway/internal/cli" {
			continue // most of its variables are those of the tests in this package
		}
		total, lines = total+n, lines+1
		told.WriteString(m[0] + "\n")
	}
	if lines == 0 {
		t.Fatalf("the output has no line for Guideway's packages:\n%s", out)
	}
	if total > most {
		t.Errorf("Guideway's packages allocate %d bytes before main, want at most %d:\n%s", total, most, &told)
	}
}
