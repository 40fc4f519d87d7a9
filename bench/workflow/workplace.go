package workflow

import (
	"fmt"
	"os"
	"path/filepath"
)

// workplace is the directory of one run, with the program, the workflows and an
// unused home directory.
type workplace struct {
	dir string
	// json and yaml are directories of the same workflows in either format.
	json, yaml string
}

func newWorkplace(dir string) (*workplace, error) {
	w := &workplace{
		dir: dir,
		// The reference reads the directory "workflows" of its working directory and reads
		// only JSON.
		json: filepath.Join(dir, "project", "workflows"),
		yaml: filepath.Join(dir, "yaml"),
	}
	for _, sub := range []string{w.json, w.yaml, w.emptyDir()} {
		if err := os.MkdirAll(sub, 0o700); err != nil {
			return nil, fmt.Errorf("create a working directory: %w", err)
		}
	}
	if err := writeWorkflows(w.json, w.yaml); err != nil {
		return nil, err
	}
	return w, nil
}

// projectDir returns a working directory with the workflows.
func (w *workplace) projectDir() string { return filepath.Dir(w.json) }

// emptyDir returns a working directory without workflows.
func (w *workplace) emptyDir() string { return filepath.Join(w.dir, "empty") }

// environmentOf returns the environment of a measured program: without the user's settings,
// and with a separate home directory.
func (w *workplace) environmentOf(home string, more ...string) []string {
	home = filepath.Join(w.dir, home)
	env := []string{
		"HOME=" + home,
		"XDG_CONFIG_HOME=" + filepath.Join(home, "config"),
		"XDG_DATA_HOME=" + filepath.Join(home, "data"),
		"XDG_CACHE_HOME=" + filepath.Join(home, "cache"),
		"XDG_STATE_HOME=" + filepath.Join(home, "state"),
		"USERPROFILE=" + home,
		"APPDATA=" + filepath.Join(home, "config"),
		"LOCALAPPDATA=" + filepath.Join(home, "data"),
	}
	for _, name := range []string{"PATH", "SYSTEMROOT", "TMPDIR", "TEMP", "TMP"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return append(env, more...)
}

// guidewayTarget returns the program under measurement.
func (w *workplace) guidewayTarget(program string) *target {
	return &target{
		name: "guideway", command: []string{program, "mcp"}, dir: w.emptyDir(), echoes: true,
		env: w.environmentOf("home", "WORKFLOW_STORAGE_PATH="+w.json),
	}
}
