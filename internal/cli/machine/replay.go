package machine

import "github.com/guideway-dev/guideway/internal/cli/server"

import "github.com/guideway-dev/guideway/internal/cli/app"

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
		Use:   "replay {RUN|FILE}",
		Short: "Run a machine again on what was recorded, and compare",
		Long: `Run a machine again on what models, tools and people answered in a run, or in the
recording that "guideway machine run --record" wrote. No model is asked, no tool is
called, and nothing is kept. The exit code is 1 where the states, the calls or the
output differ: it shows what a change of a script or a configuration does, and is
made for tests.

A run is replayed on the machine as it was then, a file on the machine as it is now;
--machine names another one.`,
		Example: "  guideway machine run support-desk --demo --record desk.json\n  guideway machine replay desk.json\n  guideway machine replay m_0123456789abcdefghjkmnp --machine ./machines/desk.json",
		Args:    app.ExactArgs(1, "one run or recording", "guideway machine replay recording.json"),
		RunE:    app.RunWithArg(do, o, &o.What),
	}
	cmd.Flags().StringVar(&o.Machine, "machine", "", "replay it on this `machine`, by name or file")
	app.AddJSONFlag(cmd, &o.JSON)
	return cmd
}

func runMachineReplay(ctx context.Context, o *machineReplayOptions) error {
	_, resolver, err := server.OpenMachineResolver(ctx, o.app)
	if err != nil {
		return err
	}
	recording, d, err := o.recording(ctx)
	if err != nil {
		return err
	}
	if name := o.Machine; name != "" || d == nil {
		if name == "" {
			name = recording.Machine
		}
		one, err := resolver.Find(name)
		if err != nil && o.Machine == "" && guideway.ErrorCode(err) == guideway.CodeNotFound {
			return guideway.Errorf(guideway.CodeNotFound, "the recording is of the machine %q, which no source has", name).
				WithFix("guideway machine replay %s --machine FILE", o.What)
		}
		if err != nil {
			return err
		}
		d = one.Definition
	}
	out, err := o.replay(ctx, resolver, d, recording)
	if err != nil {
		return err
	}
	return o.app.Host.WriteCheckResult(o.JSON, out, len(out.Differences) > 0, func() { o.tell(out) })
}

// recording reads a file, or makes the recording of a run, with its definition.
func (o *machineReplayOptions) recording(ctx context.Context) (r *driver.Recording, d *machinedef.Definition, err error) {
	if IsMachineRun(o.What) {
		err = withMachines(ctx, o.app, nil, func(ctx context.Context, desk *machineDesk) error {
			r, d, err = desk.runs.Record(ctx, desk.caller, o.What)
			return err
		})
		return r, d, err
	}
	data, err := server.ReadBoundedFile(o.app.Host.Abs(o.What))
	if err != nil {
		return nil, nil, guideway.Errorf(guideway.CodeNotFound, "read the recording: %w", err).WithFix("guideway machine run NAME --record FILE writes one")
	}
	if err := json.Unmarshal(data, &r); err != nil || r == nil || r.Machine == "" || r.Status == "" {
		return nil, nil, guideway.Errorf(guideway.CodeInvalid, "%s is no recording of a run: %w", o.What, errors.Join(err, errors.New("it must say the machine, the status and the states"))).
			WithFix("guideway machine run NAME --record FILE writes one; answers for a model alone are for guideway machine run --model scripted:FILE")
	}
	return r, nil, nil
}

// replay runs the machine on a journal that is gone afterwards.
func (o *machineReplayOptions) replay(ctx context.Context, resolver *server.MachineResolver, d *machinedef.Definition, r *driver.Recording) (*driver.ReplayResult, error) {
	dir, err := os.MkdirTemp("", "guideway-replay-")
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "make a directory to replay in: %w", err)
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

// tell tells how it went.
func (o *machineReplayOptions) tell(r *driver.ReplayResult) {
	host := o.app.Host
	s := host.OutStyles()
	u := r.Status.Usage
	what := fmt.Sprintf("%s, %s, %s", app.Plural(u.States, "state", "states"), app.Plural(u.Calls, "request", "requests"), app.Plural(u.ToolCalls, "call of a tool", "calls of tools"))
	if len(r.Differences) == 0 {
		fmt.Fprintf(host.Out, "%s: %s; it goes as it was recorded\n", s.Green("ok"), what)
		return
	}
	for _, d := range r.Differences {
		fmt.Fprintln(host.Out, app.OneLine(d))
	}
	fmt.Fprintf(host.Out, "\n%s: %s in %s\n", s.Red("differs"), app.Plural(len(r.Differences), "difference", "differences"), what)
}

// record writes the recording of a run, without what looks like a secret and
// without the keys of models.
func (d *machineDesk) record(ctx context.Context, id, file string) error {
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
		return guideway.Errorf(guideway.CodeInternal, "take the secrets out of the recording: %w", err)
	}
	if err := os.WriteFile(d.app.Host.Abs(file), append(clean, '\n'), 0o600); err != nil {
		return guideway.Errorf(guideway.CodeUnavailable, "write the recording: %w", err)
	}
	return nil
}
