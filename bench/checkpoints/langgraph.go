package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/guideway-dev/guideway/internal/checkpoint"
)

// langgraph is what the script says: milliseconds, and bytes of all files.
type langgraph struct {
	Version     string    `json:"version"`
	Synchronous int       `json:"synchronous"`
	Saves       []float64 `json:"saves"`
	Newest      []float64 `json:"newest"`
	Any         []float64 `json:"any"`
	Bytes       int64     `json:"bytes"`
}

func asTimes(list []float64) *times {
	t := &times{}
	for _, value := range list {
		t.list = append(t.list, time.Duration(value*float64(time.Millisecond)))
	}
	return t
}

// beside measures a session of 100 checkpoints in both, in turns.
func (b *bench) beside(ctx context.Context) (*table, error) {
	t := &table{
		title: "### Beside LangGraph's SQLite checkpointer\n\nThe same 100 contexts of 100 kB in one session, one client; then 200 loads of the newest and 200 of any. Milliseconds; bytes of all files afterwards.",
		head:  []string{"what", "calls", "p50", "p95", "p99", "max", "bytes"},
	}
	if !b.langgraph {
		t.title += "\n\nNot measured: -langgraph=false."
		return t, nil
	}
	dir := filepath.Join("bench", "langgraph")
	if why := b.installed(ctx, dir); why != "" {
		t.title += "\n\nLangGraph was not measured: " + why
		dir = ""
	}
	for _, share := range []float64{0.90, 0.97} {
		list := contextsOf(7, 100, 1-share)
		name := fmt.Sprintf("%.0f%% shared: ", 100*share)
		if err := b.oursBeside(ctx, t, name, list); err != nil {
			return nil, err
		}
		if dir == "" {
			continue
		}
		theirs, err := b.theirs(ctx, dir, list)
		if err != nil {
			return nil, err
		}
		who := fmt.Sprintf("%sLangGraph %s (synchronous=%d), ", name, theirs.Version, theirs.Synchronous)
		t.add(append(append([]string{who + "save"}, asTimes(theirs.Saves).cells()...), size(theirs.Bytes))...)
		t.add(append(append([]string{who + "load the newest"}, asTimes(theirs.Newest).cells()...), "")...)
		t.add(append(append([]string{who + "load any"}, asTimes(theirs.Any).cells()...), "")...)
	}
	return t, nil
}

// installed says why the packages are not there, after an attempt to install them
// where that was asked for.
func (b *bench) installed(ctx context.Context, dir string) (why string) {
	if _, err := exec.LookPath("node"); err != nil {
		return "node is not installed"
	}
	if b.install {
		cmd := exec.CommandContext(ctx, "npm", "ci", "--no-audit", "--no-fund")
		cmd.Dir, cmd.Stdout, cmd.Stderr = dir, b.stderr, b.stderr
		if err := cmd.Run(); err != nil {
			return "npm cannot install it: " + err.Error()
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "node_modules", "better-sqlite3", "build")); err != nil {
		return "it is not installed; -install has npm do so"
	}
	return ""
}

func (b *bench) oursBeside(ctx context.Context, t *table, name string, list []json.RawMessage) error {
	dir, err := b.newDir()
	if err != nil {
		return err
	}
	c, err := b.open(ctx, dir)
	if err != nil {
		return err
	}
	saves, newest, any := &times{}, &times{}, &times{}
	var ids []string
	for _, text := range list {
		err := saves.call(func() error {
			saved, err := c.Save(ctx, ada(), checkpoint.SaveRequest{Session: "work", Context: text})
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
		for took, r := range map[*times]checkpoint.LoadRequest{newest: {Session: "work"}, any: {ID: ids[i*37%len(ids)]}} {
			if err := took.call(func() error {
				_, err := c.Load(ctx, ada(), r)
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
	t.add(append(append([]string{who + "save"}, saves.cells()...), size(disk))...)
	t.add(append(append([]string{who + "load the newest"}, newest.cells()...), "")...)
	t.add(append(append([]string{who + "load any"}, any.cells()...), "")...)
	return nil
}

// theirs runs the script on the same contexts.
func (b *bench) theirs(ctx context.Context, dir string, list []json.RawMessage) (*langgraph, error) {
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
	cmd := exec.CommandContext(ctx, "node", "measure.mjs", data, file) //nolint:gosec // directories of our own
	cmd.Dir, cmd.Stderr = dir, b.stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("run LangGraph's checkpointer: %w", err)
	}
	var l langgraph
	if err := json.Unmarshal(out, &l); err != nil {
		return nil, fmt.Errorf("read what LangGraph's script says: %w", err)
	}
	return &l, nil
}
