package setup

import "github.com/guideway-dev/guideway/internal/cli/app"

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func NewVersionCmd(a *app.App, run app.RunFunc[app.PlainOptions]) *cobra.Command {
	return app.NewPlainCmd(a, run, &cobra.Command{
		Use:     "version",
		Short:   "Print the version and build information",
		Example: "  guideway version --json",
	})
}

// build is the answer of guideway version --json.
type build struct {
	Version string `json:"version"`
	// Commit is the revision, Time its time, and Modified reports uncommitted changes; they
	// are empty if the build has no such information.
	Commit   string `json:"commit,omitempty"`
	Time     string `json:"time,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

func thisBuild() build {
	b := build{Version: app.Version(), Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

// String returns the build on one line.
func (b build) String() string {
	text := "guideway " + b.Version
	if b.Commit != "" {
		text += " commit " + b.Commit[:min(12, len(b.Commit))]
		if b.Modified {
			text += " (modified)"
		}
	}
	return fmt.Sprintf("%s (%s %s/%s)", text, b.Go, b.OS, b.Arch)
}

func RunVersion(_ context.Context, o *app.PlainOptions) error {
	b := thisBuild()
	return o.App.Host.WriteResult(o.JSON, b, b.String())
}
