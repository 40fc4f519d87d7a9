package workflow

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// The reference is WorkRail, from which the steps dialect comes.
const (
	referencePackage = "@exaudeus/workrail"
	referenceVersion = "0.6.1-beta.7"
)

// referenceTarget returns the reference, or nil if it is not measured.
func (w *workplace) referenceTarget(ctx context.Context, o *options) (*target, error) {
	dir := o.reference
	if o.installReference {
		cache, err := os.UserCacheDir()
		if err != nil {
			return nil, fmt.Errorf("find the user's cache: %w", err)
		}
		dir = filepath.Join(cache, "guideway-bench", "workrail-"+referenceVersion)
		if err := installReference(ctx, dir, o.Stderr); err != nil {
			return nil, err
		}
	}
	if dir == "" {
		return nil, nil
	}
	script, err := referenceScript(dir)
	if err != nil {
		return nil, err
	}
	return &target{
		name: "reference", command: []string{"node", script}, dir: w.projectDir(),
		// In loops, WorkRail cannot read the context that it returned.
		echoes: false,
		// WorkRail ignores the end of its input and SIGTERM.
		mustKill: true,
		env:      w.environmentOf("reference-home", "WORKRAIL_DISABLE_UNIFIED_DASHBOARD=1"),
	}, nil
}

// installReference installs the reference below dir if it is missing.
func installReference(ctx context.Context, dir string, stderr io.Writer) error {
	if _, err := referenceScript(dir); err == nil {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("create a directory for the reference: %w", err)
	}
	cmd := exec.CommandContext(ctx, "npm", "install", "--prefix", dir, "--ignore-scripts", "--no-audit", "--no-fund", //nolint:gosec // a directory of the bench
		referencePackage+"@"+referenceVersion)
	cmd.Stdout, cmd.Stderr = stderr, stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("install the reference: %w (if the registry does not have it, use an installed one with -reference DIR)", err)
	}
	return nil
}

// referenceScript returns the script of an installed package: dir is the directory of the
// npm installation, or of the package.
func referenceScript(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("find the reference: %w", err)
	}
	for _, root := range []string{filepath.Join(dir, "node_modules", filepath.FromSlash(referencePackage)), dir} {
		data, err := os.ReadFile(filepath.Join(root, "package.json"))
		if err != nil {
			continue
		}
		if script := binOf(data); script != "" {
			return filepath.Join(root, filepath.FromSlash(script)), nil
		}
	}
	return "", fmt.Errorf("there is no %s with a program below %s", referencePackage, dir)
}

// binOf reads the member bin of a package.json: a path, or a map of names to paths.
func binOf(manifest []byte) string {
	var m struct {
		Bin json.RawMessage `json:"bin"`
	}
	if json.Unmarshal(manifest, &m) != nil {
		return ""
	}
	var one string
	if json.Unmarshal(m.Bin, &one) == nil {
		return one
	}
	var many map[string]string
	if json.Unmarshal(m.Bin, &many) != nil || len(many) == 0 {
		return ""
	}
	if script, ok := many["workrail"]; ok {
		return script
	}
	names := make([]string, 0, len(many))
	for name := range many {
		names = append(names, name)
	}
	return many[slices.Min(names)]
}
