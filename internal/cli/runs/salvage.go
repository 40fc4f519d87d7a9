package runs

import "github.com/guideway-dev/guideway/internal/cli/app"

import sessioncmd "github.com/guideway-dev/guideway/internal/cli/session"

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/platform/atomicfile"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/session"
	"github.com/guideway-dev/guideway/internal/store/keyfile"
	"github.com/guideway-dev/guideway/internal/store/sealed"
	"github.com/guideway-dev/guideway/internal/store/sqlite"
)

// salvageStore writes the readable data of a damaged store into a directory.
func (o *RunsExportOptions) salvageStore(ctx context.Context) error {
	cfg, err := o.app.Load()
	if err != nil {
		return err
	}
	if cfg.UsesPostgres() {
		return guideway.Errorf(guideway.CodeInvalid, "--salvage does not support a PostgreSQL store").
			WithFix("restore the PostgreSQL database from its backup")
	}
	if _, err := os.Stat(app.StorePath(cfg)); err != nil {
		return app.ReadError(app.StorePath(cfg), err)
	}
	found, err := sqlite.Salvage(ctx, app.StorePath(cfg))
	if err != nil {
		return err
	}
	decryptSalvaged(ctx, app.SealJournal(cfg, nil), found)
	host, dir := o.app.Host, o.app.Host.Abs(o.Salvage)
	if err := atomicfile.MakeDir(dir); err != nil {
		return guideway.Errorf(guideway.CodeUnavailable, "create the directory %s: %w", o.Salvage, err).
			WithFix("name a directory whose parent directory is writable for this user")
	}
	key := readKey(cfg)
	if key == nil {
		fmt.Fprintf(host.Err, "The key %s does not exist or cannot be read: the integrity of the events is not verified.\n", cfg.Journal.KeyFile)
	}
	for _, problem := range found.Problems {
		fmt.Fprintf(host.Err, "lost: %s\n", app.OneLine(problem))
	}
	runs, whole, written := salvagedRunIDs(found), 0, 0
	for _, id := range runs {
		r := newRescuedRun(found, id)
		lost := r.truncateAtBreak(key, found.Events[id])
		if lost == "" {
			whole++
		} else {
			fmt.Fprintf(host.Err, "%s: %s\n", r.fileName(), lost)
		}
		if len(r.events) == 0 {
			continue // the bundle would have no events
		}
		written++
		if err := r.writeBundle(host, dir, o.Force); err != nil {
			return err
		}
	}
	if err := writeRescuedDocuments(host, found, dir, o.Force); err != nil {
		return err
	}
	fmt.Fprintf(host.Out, "Recovered in %s: %d of %s (%d complete) and %s\n", o.Salvage, written, app.Plural(len(runs), "run", "runs"), whole,
		app.Plural(len(found.Documents), "session document", "session documents"))
	if written > 0 {
		fmt.Fprintln(host.Out, "After the store is repaired, to import a run: guideway runs import FILE")
	}
	return nil
}

// decryptSalvaged decrypts what was salvaged. What cannot be decrypted is lost.
func decryptSalvaged(ctx context.Context, s *sealed.Store, found *sqlite.Salvaged) {
	lost := func(err error) { found.Problems = append(found.Problems, err.Error()) }
	for i := range found.Runs {
		s.OpenRecord(ctx, &found.Runs[i])
	}
	for id, events := range found.Events {
		if err := s.OpenEvents(ctx, id, events); err != nil {
			lost(err)
			delete(found.Events, id)
		}
	}
	var documents []session.Document
	for _, d := range found.Documents {
		if err := s.OpenDocument(ctx, &d); err != nil {
			lost(err)
			continue
		}
		documents = append(documents, d)
	}
	found.Documents = documents
}

// salvagedRunIDs returns the ids of the runs of which any data is left.
func salvagedRunIDs(found *sqlite.Salvaged) []string {
	ids := slices.Collect(maps.Keys(found.Events))
	for _, r := range found.Runs {
		ids = append(ids, r.ID)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// readKey reads the key without creating one. It returns nil if the key cannot be read.
func readKey(cfg *config.Config) run.Key {
	if _, err := os.Lstat(cfg.Journal.KeyFile); err != nil {
		return nil
	}
	key, _, err := keyfile.LoadOrCreate(cfg.Journal.KeyFile)
	if err != nil {
		return nil
	}
	return key
}

// rescuedRun is the recovered data of a run.
type rescuedRun struct {
	record     run.Record
	definition run.Definition
	events     []run.Event
}

// newRescuedRun collects the data of a run. If its record is lost, the data of its first
// event is used.
func newRescuedRun(found *sqlite.Salvaged, id string) *rescuedRun {
	r := &rescuedRun{record: run.Record{ID: id}}
	if i := slices.IndexFunc(found.Runs, func(rec run.Record) bool { return rec.ID == id }); i >= 0 {
		r.record = found.Runs[i]
	} else if first := found.Events[id][0]; first.Kind == run.KindCreated { // the run is known only from its events, so there is at least one
		var created run.Created
		if json.Unmarshal(first.Data, &created) == nil {
			r.record.Workflow, r.record.Name, r.record.Version, r.record.Hash = created.Workflow, created.Name, created.Version, created.Hash
			r.record.Goal, r.record.Project, r.record.Created = created.Goal, created.Project, first.At
			r.record.User, r.record.Client = first.By.User, first.By.Client
		}
	}
	if i := slices.IndexFunc(found.Definitions, func(d run.Definition) bool { return d.Hash == r.record.Hash }); i >= 0 {
		r.definition = found.Definitions[i]
	}
	return r
}

// fileName returns a name that identifies the run for the user.
func (r *rescuedRun) fileName() string {
	if r.record.Goal == "" {
		return app.OneLine(r.record.ID)
	}
	return app.OneLine(r.record.ID + " (" + r.record.Goal + ")")
}

// truncateAtBreak keeps the events before the first one that is lost or, if there is a key,
// altered. It returns a description of the loss, or "".
func (r *rescuedRun) truncateAtBreak(key run.Key, events []run.Event) string {
	mac := key.Root(r.record.ID)
	for i, e := range events {
		if e.Seq != int64(i)+1 {
			r.events = events[:i]
			return fmt.Sprintf("event %d is lost, and all later events are omitted", i+1)
		}
		if key != nil && !bytes.Equal(e.MAC, key.Chain(r.record.ID, mac, e)) {
			r.events = events[:i]
			return fmt.Sprintf("event %d was altered, or is authenticated by another key; this and all later events are omitted", e.Seq)
		}
		mac = e.MAC
	}
	r.events = events
	switch {
	case len(events) == 0:
		return fmt.Sprintf("all events of the run are lost (%s)", app.Plural(int(r.record.Seq), "event", "events"))
	case r.definition.Text == "":
		return "the workflow of the run is lost"
	case int64(len(events)) < r.record.Seq:
		return fmt.Sprintf("the end of the run is lost (%s)", app.Plural(int(r.record.Seq)-len(events), "event", "events"))
	default:
		return ""
	}
}

func (r *rescuedRun) writeBundle(host *app.Host, dir string, force bool) error {
	bundle, err := run.Bundle(r.record, r.definition, r.events, host.CurrentTime().UTC())
	if err != nil {
		return err
	}
	return app.WriteNewFile(filepath.Join(dir, filepath.Base(r.record.ID)+".json"), bundle, 0o600, force)
}

func writeRescuedDocuments(host *app.Host, found *sqlite.Salvaged, dir string, force bool) error {
	if len(found.Documents) == 0 {
		return nil
	}
	var text bytes.Buffer
	if err := app.WriteJSON(&text, sessioncmd.SessionsListAnswer{Sessions: found.Documents}); err != nil {
		return err
	}
	return app.WriteNewFile(filepath.Join(dir, "sessions.json"), text.Bytes(), 0o600, force)
}
