package checkpoints

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/guideway-dev/guideway/bench/measure"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
)

// langgraph is the output of the script. The lists contain milliseconds; Bytes is the size
// of all files.
type langgraph struct {
	Version     string    `json:"version"`
	Synchronous int       `json:"synchronous"`
	Saves       []float64 `json:"saves"`
	Newest      []float64 `json:"newest"`
	Any         []float64 `json:"any"`
	Bytes       int64     `json:"bytes"`
}

// asTimes converts a list of milliseconds to Times.
func asTimes(list []float64) *measure.Times {
	t := &measure.Times{}
	for _, value := range list {
		t.Add(time.Duration(value * float64(time.Millisecond)))
	}
	return t
}

// compareLangGraph measures a session of 100 checkpoints in Guideway and LangGraph, in
// turns.
func (b *bench) compareLangGraph(ctx context.Context) (*table, error) {
	t := &table{
		title: "### Comparison with LangGraph's SQLite checkpointer\n\nThe same 100 contexts of 100 kB in one session, one client; then 200 loads of the newest and 200 of any. Milliseconds; bytes of all files afterwards.",
		head:  []string{"what", "calls", "p50", "p95", "p99", "max", "bytes"},
	}
	if !b.langgraph {
		t.title += "\n\nNot measured: -langgraph=false."
		return t, nil
	}
	dir := "langgraph"
	if why := b.findMissingPackages(ctx, dir); why != "" {
		t.title += "\n\nLangGraph was not measured: " + why
		dir = ""
	}
	for _, share := range []float64{0.90, 0.97} {
		list := contextsOf(7, 100, 1-share)
		name := fmt.Sprintf("%.0f%% shared: ", 100*share)
		if err := b.measureOurs(ctx, t, name, list); err != nil {
			return nil, err
		}
		if dir == "" {
			continue
		}
		theirs, err := b.measureTheirs(ctx, dir, list)
		if err != nil {
			return nil, err
		}
		who := fmt.Sprintf("%sLangGraph %s (synchronous=%d), ", name, theirs.Version, theirs.Synchronous)
		t.addRow(append(append([]string{who + "save"}, timeCells(asTimes(theirs.Saves))...), formatSize(theirs.Bytes))...)
		t.addRow(append(append([]string{who + "load the newest"}, timeCells(asTimes(theirs.Newest))...), "")...)
		t.addRow(append(append([]string{who + "load any"}, timeCells(asTimes(theirs.Any))...), "")...)
	}
	return t, nil
}

// findMissingPackages returns the reason why LangGraph cannot run, and "" if it can.
// With -install it installs the packages first.
func (b *bench) findMissingPackages(ctx context.Context, dir string) (why string) {
	if _, err := exec.LookPath("node"); err != nil {
		return "node is not installed"
	}
	if b.install {
		if err := measure.InstallPackages(ctx, dir, b.Stderr); err != nil {
			return err.Error()
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "node_modules", "better-sqlite3", "build")); err != nil {
		return "not installed; -install installs it by npm"
	}
	return ""
}

// measureOurs measures Guideway while it saves and loads the contexts.
func (b *bench) measureOurs(ctx context.Context, t *table, name string, list []json.RawMessage) error {
	dir, err := b.newDir()
	if err != nil {
		return err
	}
	c, err := b.openStore(ctx, dir)
	if err != nil {
		return err
	}
	saves, newest, any := &measure.Times{}, &measure.Times{}, &measure.Times{}
	var ids []string
	for _, text := range list {
		err := saves.Call(func() error {
			saved, err := c.Save(ctx, owner(), checkpoint.SaveRequest{Session: "work", Context: text})
			if err == nil {
				ids = append(ids, saved.ID)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	for i := range 200 {
		for took, r := range map[*measure.Times]checkpoint.LoadRequest{newest: {Session: "work"}, any: {ID: ids[i*37%len(ids)]}} {
			if err := took.Call(func() error {
				_, err := c.Load(ctx, owner(), r)
				return err
			}); err != nil {
				return err
			}
		}
	}
	if err := c.Close(); err != nil {
		return err
	}
	disk, err := onDisk(dir)
	if err != nil {
		return err
	}
	who := name + "Guideway (synchronous=2), "
	t.addRow(append(append([]string{who + "save"}, timeCells(saves)...), formatSize(disk))...)
	t.addRow(append(append([]string{who + "load the newest"}, timeCells(newest)...), "")...)
	t.addRow(append(append([]string{who + "load any"}, timeCells(any)...), "")...)
	return nil
}

// measureTheirs measures LangGraph with its script on the same contexts.
func (b *bench) measureTheirs(ctx context.Context, dir string, list []json.RawMessage) (*langgraph, error) {
	data, err := b.newDir()
	if err != nil {
		return nil, err
	}
	var lines bytes.Buffer
	for _, text := range list {
		fmt.Fprintf(&lines, "{\"thread\":\"work\",\"context\":%s}\n", text)
	}
	file := data + ".ndjson"
	if err := os.WriteFile(file, lines.Bytes(), 0o600); err != nil {
		return nil, fmt.Errorf("write the contexts: %w", err)
	}
	cmd := exec.CommandContext(ctx, "node", "measure.mjs", data, file) //nolint:gosec // the bench has created these directories
	cmd.Dir, cmd.Stderr = dir, b.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("run LangGraph's checkpointer: %w", err)
	}
	var l langgraph
	if err := json.Unmarshal(out, &l); err != nil {
		return nil, fmt.Errorf("read the output of LangGraph's script: %w", err)
	}
	return &l, nil
}
