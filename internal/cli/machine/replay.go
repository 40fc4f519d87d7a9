package machine

import "github.com/guideway-dev/guideway/internal/cli/server"

import "github.com/guideway-dev/guideway/internal/cli/app"

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/hooks/sandbox"
	machinedef "github.com/guideway-dev/guideway/internal/machine/definition"
	"github.com/guideway-dev/guideway/internal/machine/driver"
	"github.com/guideway-dev/guideway/internal/platform/jsontext"
	"github.com/guideway-dev/guideway/internal/store/keyfile"
	"github.com/guideway-dev/guideway/internal/store/sqlite"
	"github.com/spf13/cobra"
)

// machineReplayOptions is the command line of guideway machine replay.
type machineReplayOptions struct {
	app     *app.App
	What    string
	Machine string
	JSON    bool
}

func newMachineReplayCmd(a *app.App, do func(context.Context, *machineReplayOptions) error) *cobra.Command {
	o := &machineReplayOptions{app: a}
	cmd := &cobra.Command{
		Use:  "replay {RUN|FILE}",
		Args: app.ExactArgs(1, "a run or a recording", "guideway machine replay recording.json"),
		RunE: app.RunWithArg(do, o, &o.What),
	}
	cmd.Flags().StringVar(&o.Machine, "machine", "", "replay on this `machine`, by name or file")
	app.AddJSONFlag(cmd, &o.JSON)
	return cmd
}

func runMachineReplay(ctx context.Context, o *machineReplayOptions) error {
	_, resolver, err := server.OpenMachineResolver(ctx, o.app)
	if err != nil {
		return err
	}
	recording, d, err := o.loadRecording(ctx)
	if err != nil {
		return err
	}
	if name := o.Machine; name != "" || d == nil {
		if name == "" {
			name = recording.Machine
		}
		one, err := resolver.Find(name)
		if err != nil && o.Machine == "" && guideway.ErrorCode(err) == guideway.CodeNotFound {
			return guideway.Errorf(guideway.CodeNotFound, "the recording is of the machine %q, which is not in any source", name).
				WithFix("guideway machine replay %s --machine FILE", o.What)
		}
		if err != nil {
			return err
		}
		d = one.Definition
	}
	out, err := o.replayRecording(ctx, resolver, d, recording)
	if err != nil {
		return err
	}
	return o.app.Host.WriteCheckResult(o.JSON, out, len(out.Differences) > 0, func() { o.writeResult(out) })
}

// loadRecording returns a recording and its definition. It reads the recording from a file,
// or creates one from a run.
func (o *machineReplayOptions) loadRecording(ctx context.Context) (r *driver.Recording, d *machinedef.Definition, err error) {
	if IsMachineRun(o.What) {
		err = withMachines(ctx, o.app, nil, func(ctx context.Context, desk *machineDeps) error {
			r, d, err = desk.runs.Record(ctx, desk.caller, o.What)
			return err
		})
		return r, d, err
	}
	data, err := server.ReadBoundedFile(o.app.Host.Abs(o.What))
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil, guideway.Errorf(guideway.CodeNotFound, "there is no recording %s", o.What).
				WithFix("guideway machine run NAME --record FILE, to write a recording")
		}
		return nil, nil, app.ReadError(o.What, err)
	}
	err = json.Unmarshal(data, &r)
	if err == nil && (r == nil || r.Machine == "" || r.Status == "") {
		err = errors.New(`the member "machine" or the member "status" is missing`)
	}
	if err != nil {
		return nil, nil, guideway.Errorf(guideway.CodeInvalid, "%s is not a recording of a run: %w", o.What, err).
			WithFix("guideway machine run NAME --record FILE, to write a recording; use a file of model answers with guideway machine run --model scripted:FILE")
	}
	return r, nil, nil
}

// replayRecording runs the machine with a temporary journal.
func (o *machineReplayOptions) replayRecording(ctx context.Context, resolver *server.MachineResolver, d *machinedef.Definition, r *driver.Recording) (*driver.ReplayResult, error) {
	dir, err := os.MkdirTemp("", "guideway-replay-")
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "create a temporary directory for the replay: %w", err).
			WithFix("make %s writable for this user, and check that its disk is not full", os.TempDir())
	}
	defer func() { _ = os.RemoveAll(dir) }()
	key, _, err := keyfile.LoadOrCreate(filepath.Join(dir, "journal.key"))
	if err != nil {
		return nil, err
	}
	journal, err := sqlite.Open(ctx, sqlite.Options{Path: filepath.Join(dir, "guideway.db")})
	if err != nil {
		return nil, err
	}
	defer func() { _ = journal.Close() }()
	cfg, err := o.app.Load()
	if err != nil {
		return nil, err
	}
	log := o.app.Logger(cfg)
	pool, err := sandbox.NewPool(sandbox.Options{Log: log})
	if err != nil {
		return nil, err
	}
	defer server.ClosePool(pool, log)
	return driver.Replay(ctx, driver.Options{
		Journal: journal, Key: key, Machines: resolver, Handlers: &driver.Scripts{Sandbox: pool, Owner: "replay"}, Logger: log,
	}, d, r)
}

// writeResult prints the result of a replay.
func (o *machineReplayOptions) writeResult(r *driver.ReplayResult) {
	host := o.app.Host
	s := host.OutStyles()
	u := r.Status.Usage
	what := fmt.Sprintf("%s, %s, %s", app.Plural(u.States, "state", "states"), app.Plural(u.Calls, "model call", "model calls"), app.Plural(u.ToolCalls, "tool call", "tool calls"))
	if len(r.Differences) == 0 {
		fmt.Fprintf(host.Out, "%s: %s; same as recorded\n", s.Green("ok"), what)
		return
	}
	for _, d := range r.Differences {
		fmt.Fprintln(host.Out, app.OneLine(d))
	}
	fmt.Fprintf(host.Out, "\n%s: %s in %s\n", s.Red("differs"), app.Plural(len(r.Differences), "difference", "differences"), what)
}

// writeRecording writes the recording of a run, without the model keys and probable
// secrets. Only the user may read the file.
func (d *machineDeps) writeRecording(ctx context.Context, id, file string) error {
	r, _, err := d.runs.Record(ctx, d.caller, id)
	if err != nil {
		return err
	}
	text, err := jsontext.Indent(r)
	if err != nil {
		return guideway.Errorf(guideway.CodeInternal, "write the recording: %w", err)
	}
	clean, err := server.RedactDocument(d.app, d.cfg, text)
	if err != nil {
		return guideway.Errorf(guideway.CodeInternal, "remove the secrets from the recording: %w", err)
	}
	return app.WriteNewFile(d.app.Host.Abs(file), append(clean, '\n'), 0o600, true)
}
