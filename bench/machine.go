package main

import (
	"context"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// machine says where the numbers come from.
type machine struct {
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

func describeMachine(ctx context.Context) machine {
	m := machine{
		Date:     time.Now().UTC().Format(time.DateOnly),
		Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Cores:    runtime.NumCPU(), Processor: processor(),
		Go: runtime.Version(), LoadBefore: loadAverage(),
	}
	if out, err := exec.CommandContext(ctx, "node", "--version").Output(); err == nil {
		m.Node = strings.TrimSpace(string(out))
	}
	return m
}
