package measure

import (
	"context"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// Machine describes where and when the numbers were measured.
type Machine struct {
	Date      string `json:"date"`
	Platform  string `json:"platform"`
	Cores     int    `json:"cores"`
	Processor string `json:"processor,omitempty"`
	Go        string `json:"go"`
	Node      string `json:"node,omitempty"`
	// LoadBefore and LoadAfter are the load averages of 1, 5 and 15 minutes.
	LoadBefore string `json:"loadBefore,omitempty"`
	LoadAfter  string `json:"loadAfter,omitempty"`
}

// DescribeMachine describes this machine before a measurement.
func DescribeMachine(ctx context.Context) Machine {
	m := Machine{
		Date:     time.Now().UTC().Format(time.DateOnly),
		Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Cores:    runtime.NumCPU(), Processor: processorModel(),
		Go: runtime.Version(), LoadBefore: loadAverage(),
	}
	if out, err := exec.CommandContext(ctx, "node", "--version").Output(); err == nil {
		m.Node = strings.TrimSpace(string(out))
	}
	return m
}

// Finish records the load after the measurement.
func (m *Machine) Finish() { m.LoadAfter = loadAverage() }

// String returns the machine in one line, and its load in a second one if the platform
// reports it.
func (m *Machine) String() string {
	parts := []string{m.Date, m.Platform, fmt.Sprintf("%d cores", m.Cores)}
	if m.Processor != "" {
		parts = append(parts, m.Processor)
	}
	parts = append(parts, m.Go)
	if m.Node != "" {
		parts = append(parts, "node "+m.Node)
	}
	text := strings.Join(parts, ", ") + "\n"
	if m.LoadBefore != "" {
		text += fmt.Sprintf("load average: %s before, %s after\n", m.LoadBefore, m.LoadAfter)
	}
	return text
}
