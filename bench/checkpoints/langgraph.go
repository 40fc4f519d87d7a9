package checkpoints

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"time"

	"github.com/guideway-dev/guideway/bench/measure"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// langgraph is the output of the script. The lists contain milliseconds; Processor is the
// CPU time of a save in milliseconds, Bytes the size of all files.
type langgraph struct {
	Version     string    `json:"version"`
	Synchronous int       `json:"synchronous"`
	Saves       []float64 `json:"saves"`
	Newest      []float64 `json:"newest"`
	Any         []float64 `json:"any"`
	Processor   float64   `json:"processor"`
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

// compareLangGraph measures a session of 100 checkpoints in Guideway, as a library and over
// MCP, and in LangGraph, as it is and with the durability of Guideway, in turns.
func (b *bench) compareLangGraph(ctx context.Context) (*table, error) {
	t := &table{
		title: "### Comparison with LangGraph's SQLite checkpointer\n\nThe same 100 contexts of 100 kB in one session, one client; then 200 loads of the newest and 200 of any. Milliseconds; bytes of all files afterwards. With `synchronous=2` a save is durable when it returns, with 1, the default of LangGraph's driver, it does not wait for the disk. The processor time of a save includes the work after the answer. Over MCP, a load above 32 kB is cut. Targets: a save of 4 ms p50, over MCP 8; any load of 2 ms p50, over MCP 4.",
		head:  []string{"what", "calls", "p50", "p95", "p99", "max", "processor", "bytes"},
	}
	if !b.langgraph {
		t.title += "\n\nLangGraph was not measured: -langgraph=false."
	} else if why := b.findMissingPackages(ctx, "langgraph"); why != "" {
		t.title += "\n\nLangGraph was not measured: " + why
		b.langgraph = false
	}
	for _, share := range []float64{0.90, 0.97} {
		list := contextsOf(7, 100, 1-share)
		name := fmt.Sprintf("%.0f%% shared: ", 100*share)
		if err := b.measureOurs(ctx, t, name, list); err != nil {
			return nil, err
		}
		if err := b.measureMCP(ctx, t, name, list); err != nil {
			return nil, err
		}
		if !b.langgraph {
			continue
		}
		for _, synchronous := range []string{"2", "1"} {
			theirs, err := b.measureTheirs(ctx, "langgraph", list, synchronous)
			if err != nil {
				return nil, err
			}
			who := fmt.Sprintf("%sLangGraph %s (synchronous=%d), ", name, theirs.Version, theirs.Synchronous)
			t.addCalls(who, asTimes(theirs.Saves), asTimes(theirs.Newest), asTimes(theirs.Any), &theirs.Processor, theirs.Bytes)
		}
	}
	return t, nil
}

// addCalls adds the rows of one program.
func (t *table) addCalls(who string, saves, newest, any *measure.Times, processor *float64, bytes int64) {
	cost := ""
	if processor != nil {
		cost = fmt.Sprintf("%.2f", *processor)
	}
	t.addRow(append(append([]string{who + "save"}, timeCells(saves)...), cost, formatSize(bytes))...)
	t.addRow(append(append([]string{who + "load the newest"}, timeCells(newest)...), "", "")...)
	t.addRow(append(append([]string{who + "load any"}, timeCells(any)...), "", "")...)
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
	cpu := measure.StartCPU(os.Getpid())
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
	c.FinishFolds()
	processor := cpu.PerCall(len(list))
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
	t.addCalls(name+"Guideway (synchronous=2), ", saves, newest, any, processor, disk)
	return nil
}

// measureMCP measures Guideway over MCP while it saves and loads the contexts.
func (b *bench) measureMCP(ctx context.Context, t *table, name string, list []json.RawMessage) error {
	session, cmd, err := b.ConnectStdio(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = session.Close() }()
	saves, newest, other := &measure.Times{}, &measure.Times{}, &measure.Times{}
	call := func(took *measure.Times, tool string, args map[string]any) (string, error) {
		var res *mcp.CallToolResult
		err := took.Call(func() (err error) {
			res, err = session.CallTool(ctx, &mcp.CallToolParams{Name: "workflow_checkpoint_" + tool, Arguments: args})
			return err
		})
		if err != nil {
			return "", fmt.Errorf("call %s: %w", tool, err)
		}
		text, _ := json.Marshal(res.Content)
		if res.IsError {
			return "", fmt.Errorf("call %s: %s", tool, text)
		}
		return string(text), nil
	}
	ids, pattern := []string{}, regexp.MustCompile(`\bc_[a-z0-9]{23}\b`)
	cpu := measure.StartCPU(cmd.Process.Pid)
	for _, text := range list {
		answer, err := call(saves, "save", map[string]any{"sessionId": "work", "context": text})
		if err != nil {
			return err
		}
		ids = append(ids, pattern.FindString(answer))
	}
	processor := cpu.PerCall(len(list))
	for i := range 200 {
		if _, err := call(newest, "load", map[string]any{"sessionId": "work"}); err != nil {
			return err
		}
		if _, err := call(other, "load", map[string]any{"checkpointId": ids[i*37%len(ids)]}); err != nil {
			return err
		}
	}
	if err := session.Close(); err != nil {
		return fmt.Errorf("end guideway mcp: %w", err)
	}
	disk, err := onDisk(cmd.Dir)
	if err != nil {
		return err
	}
	t.addCalls(name+"Guideway over MCP (stdio), ", saves, newest, other, processor, disk)
	return nil
}

// measureTheirs measures LangGraph with its script on the same contexts.
func (b *bench) measureTheirs(ctx context.Context, dir string, list []json.RawMessage, synchronous string) (*langgraph, error) {
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
	cmd := exec.CommandContext(ctx, "node", "measure.mjs", data, file, synchronous) //nolint:gosec // the bench has created these directories
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
