package server

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/contexts/blob/seal"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/guideway-dev/guideway/internal/gateway/holds"
	"github.com/guideway-dev/guideway/internal/gateway/requestlog"
	hookengine "github.com/guideway-dev/guideway/internal/hooks/engine"
	hookstate "github.com/guideway-dev/guideway/internal/hooks/state"
	"github.com/guideway-dev/guideway/internal/notice"
	"github.com/guideway-dev/guideway/internal/platform/ctxsleep"
	terms "github.com/guideway-dev/guideway/internal/platform/words"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/session"
	"github.com/guideway-dev/guideway/internal/store/checkpoints"
	"github.com/guideway-dev/guideway/internal/store/storetest"
	"github.com/guideway-dev/guideway/internal/testutil/planted"
)

// TestPlantedWords writes 200 words, with each kind of write, to a data directory whose
// stores stay open. With encryption, no word is readable after any write. Without
// encryption, no word is readable after the data that contains the word is deleted. The
// tables of PostgreSQL count as a part of the data directory.
func TestPlantedWords(t *testing.T) {
	t.Parallel()
	for _, store := range []string{config.StoreSQLite, "postgres"} {
		for _, mode := range []string{config.EncryptionKeyFile, config.EncryptionDisabled} {
			t.Run(store+" "+mode, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				cfg := &config.Config{
					DataDir: filepath.Join(dir, "data"), Journal: config.Journal{KeyFile: filepath.Join(dir, "config", "journal.key")}, Store: store,
					Encryption: config.Encryption{Mode: mode, KeyFile: filepath.Join(dir, "config", "key")},
					Gateway:    config.Gateway{LargeResult: 1},
				}
				if store == "postgres" {
					cfg.Store = storetest.NewSchema(t)
				}
				testPlantedWords(t, cfg)
			})
		}
	}
}

func checkPlanted(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%v (%s)", err, guideway.ErrorFix(err))
	}
}

// plantedWrite is a kind of write. If erase is nil, the kind of data is not deleted by a person.
type plantedWrite struct {
	name  string
	write func(words []string) error
	erase func() error
}

func testPlantedWords(t *testing.T, cfg *config.Config) {
	t.Helper()
	writes := plantedWrites(t, cfg)
	words := planted.Words(200)
	share := len(words) / len(writes)
	find := func(list []string) []string {
		if cfg.UsesPostgres() {
			storetest.DumpTables(t, cfg.Store, filepath.Join(cfg.DataDir, "dump"))
		}
		return planted.Find(t, cfg.DataDir, list)
	}
	for i, w := range writes {
		checkPlanted(t, w.write(words[i*share:][:share]))
		found := find(words[:(i+1)*share])
		if encrypted := cfg.Encryption.Mode != config.EncryptionDisabled; encrypted && len(found) > 0 {
			t.Errorf("after a write of %s: %d words are readable: %v", w.name, len(found), found[:1])
		} else if !encrypted && len(found) == 0 {
			t.Errorf("after a write of %s, the test finds no word", w.name)
		}
	}
	for i, w := range writes {
		if w.erase == nil {
			continue
		}
		checkPlanted(t, w.erase())
		if found := find(words[i*share:][:share]); len(found) > 0 {
			t.Errorf("after a deletion of %s: %d words are readable: %v", w.name, len(found), found[:1])
		}
	}
}

// plantedWrites opens the stores of a data directory.
func plantedWrites(t *testing.T, cfg *config.Config) []plantedWrite {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	journal, err := app.OpenJournal(t.Context(), cfg, log)
	checkPlanted(t, err)
	t.Cleanup(func() { checkPlanted(t, journal.Close()) })
	s := app.SealJournal(cfg, journal)
	options := checkpoints.Options{DataDir: cfg.DataDir, Store: cfg.Store, Journal: func(context.Context) (checkpoint.Index, error) { return journal.(checkpoint.Index), nil }}
	if cfg.Encryption.Mode != config.EncryptionDisabled {
		options.Encryption = seal.File{Path: cfg.Encryption.KeyFile}
	}
	saved, err := checkpoints.Open(t.Context(), options)
	checkPlanted(t, err)
	t.Cleanup(func() { checkPlanted(t, saved.Close()) })
	var r run.Record
	return append(plantedGatewayWrites(t, cfg, log), []plantedWrite{
		plantedNotices(t, cfg, log),
		{name: "a run", write: func(words []string) error { r, err = writePlantedRun(t.Context(), s, words); return err }},
		{name: "an event with evidence", write: func(words []string) error {
			text, err := json.Marshal(map[string]string{"output": strings.Join(words, " ")})
			if err != nil {
				return err
			}
			return appendPlanted(t.Context(), s, &r, "check_finished", string(text))
		}},
		plantedDocument(t, s),
		{name: "a checkpoint", write: func(words []string) error {
			_, err := saved.Save(t.Context(), guideway.Principal{User: "ada"}, checkpoint.SaveRequest{Session: "s", Context: fmt.Appendf(nil, `{%q:%q}`, words[0], strings.Join(words[1:], " "))})
			return err
		}, erase: func() error {
			_, err := saved.Delete(t.Context(), guideway.Principal{User: "ada"}, checkpoint.DeleteRequest{Session: "s"})
			return err
		}},
		{name: "a compressed context", write: func(words []string) error {
			_, err := saved.StoreFragment(t.Context(), guideway.Principal{User: "ada"}, "c", fmt.Appendf(nil, `{"text":%q}`, strings.Join(words, " ")))
			return err
		}, erase: func() error {
			_, err := saved.Delete(t.Context(), guideway.Principal{User: "ada"}, checkpoint.DeleteRequest{Session: "c"})
			return err
		}},
		plantedState(t, s),
	}...)
}

// plantedDocument is the write and the erasure of a session document.
func plantedDocument(t *testing.T, s session.Store) plantedWrite {
	t.Helper()
	now := time.Now()
	ref := session.Ref{User: "ada", Project: "p", Workflow: "w", ID: "d"}
	return plantedWrite{name: "a session document", write: func(words []string) error {
		d := session.Document{Ref: ref, Created: now, Updated: now, Revision: 1, Data: map[string]any{"dashboard": words[0], "notes": strings.Join(words[2:10], " ")}}
		if err := s.CreateDocument(t.Context(), d, []session.LogEntry{{At: now, Revision: 1, Pointer: "/notes", Message: words[1]}}); err != nil {
			return err
		}
		_, err := s.UpdateDocument(t.Context(), ref, func(d session.Document) (session.Document, []session.LogEntry, error) {
			d.Data["more"] = strings.Join(words[10:], " ")
			return d, nil, nil
		})
		return err
	}, erase: func() error {
		if err := s.DeleteDocument(t.Context(), ref, now); err != nil {
			return err
		}
		return s.PurgeDocument(t.Context(), ref)
	}}
}

// plantedState is a write of the state of a hook, and its deletion by a script.
func plantedState(t *testing.T, s hookstate.Store) plantedWrite {
	t.Helper()
	serve := func(call, want string) error {
		got, err := hookstate.Serve(t.Context(), s, hookstate.Caller{Graph: "g"}, time.Now(), []byte(call))
		if err == nil && string(got) != want {
			t.Errorf("the state is %s, not %s", got, want)
		}
		return err
	}
	return plantedWrite{name: "the state of a hook", write: func(words []string) error {
		value := fmt.Sprintf("%q", strings.Join(words, " "))
		if err := serve(`{"op":"set","scope":"global","key":"k","value":`+value+`}`, "true"); err != nil {
			return err
		}
		return serve(`{"op":"get","scope":"global","key":"k"}`, value)
	}, erase: func() error { return serve(`{"op":"set","scope":"global","key":"k","value":null}`, "true") }}
}

// plantedNotices is a write of notices that their receiver does not accept.
func plantedNotices(t *testing.T, cfg *config.Config, log *slog.Logger) plantedWrite {
	t.Helper()
	source := make(plantedSource, 1)
	o := notice.Options{
		Receivers: []notice.Receiver{{Name: "r", Types: []notice.Type{notice.TypeGate}, Command: []string{filepath.Join(cfg.DataDir, "missing")}, Timeout: time.Second}},
		Sources:   []notice.Source{source}, Dir: app.NoticesDir(cfg), Texts: app.SealFiles(cfg), Log: log, Address: func(context.Context) string { return "" },
	}
	return plantedWrite{name: "notices", write: func(words []string) error {
		source <- notice.Notice{ID: "n_1", Type: notice.TypeGate, At: time.Now(), Text: words[0], Goal: strings.Join(words[1:], " ")}
		sender := notice.Start(o)
		defer sender.Close()
		for {
			box, err := notice.ReadOutbox(o.Dir, "r", o.Texts)
			if err != nil || len(box.Pending) > 0 {
				return err
			}
			if err := ctxsleep.For(t.Context(), time.Millisecond); err != nil {
				return err
			}
		}
	}}
}

// plantedSource is a source of notices.
type plantedSource chan notice.Notice

// Name implements notice.Source.
func (plantedSource) Name() string { return "planted" }

// Watch implements notice.Source.
func (plantedSource) Watch(context.Context) <-chan struct{} { return nil }

// Read implements notice.Source.
func (s plantedSource) Read(_ context.Context, after int64) (list []notice.Notice, next int64, err error) {
	select {
	case n := <-s:
		return []notice.Notice{n}, 1, nil
	default:
		return nil, max(after, 0), nil
	}
}

// plantedGatewayWrites are the writes of the gateway.
func plantedGatewayWrites(t *testing.T, cfg *config.Config, log *slog.Logger) []plantedWrite {
	t.Helper()
	requests := NewRequestLog(cfg)
	t.Cleanup(requests.Close)
	now := time.Now()
	results := openResults(cfg, "", func() time.Time { return now }, log)
	host := &app.App{Host: &app.Host{Err: io.Discard}}
	calls := host.OpenHolds(cfg)
	var held holds.Call
	return []plantedWrite{
		{name: "a recorded request", write: func(words []string) error {
			l, err := requests.openLog(t.Context())
			if err != nil {
				return err
			}
			graph := requestlog.Graph{ID: "g", Nodes: []requestlog.Node{{Label: words[0], NodeTrace: hookengine.NodeTrace{ID: "n"}}}}
			err = l.Write(t.Context(), requestlog.Batch{Entries: []*requestlog.Entry{{
				ID: "q_1", At: now, User: "ada", Graphs: []requestlog.Graph{graph}, Error: words[1],
				Request: &requestlog.Body{Text: strings.Join(words[2:10], " ")}, Response: &requestlog.Body{Text: strings.Join(words[10:], " ")},
			}}})
			if err != nil {
				return err
			}
			e, err := l.Get(t.Context(), "ada", "q_1")
			if err == nil && (e.Error != words[1] || e.Response.Text != strings.Join(words[10:], " ") || e.Graphs[0].Nodes[0].Label != words[0]) {
				t.Errorf("the recorded request is %+v", e)
			}
			return err
		}, erase: func() error {
			l, err := requests.openLog(t.Context())
			if err == nil {
				_, err = l.Prune(t.Context(), now.Add(time.Hour), 0)
			}
			return err
		}},
		{name: "a large result", write: func(words []string) error {
			text := strings.Join(words, " ")
			ref, err := results.Add("ada", []byte(text))
			if err != nil {
				return err
			}
			if got, err := results.Get("ada", ref); err != nil || string(got) != text {
				t.Errorf("the large result is %q, %v", got, err)
			}
			return nil
		}, erase: func() error {
			later := *cfg
			later.Requests.Retention = time.Minute
			now = now.Add(time.Hour)
			_ = openResults(&later, "", func() time.Time { return now }, log) // removes expired results
			return nil
		}},
		{name: "a held call", write: func(words []string) (err error) {
			held, err = calls.Claim(t.Context(), holds.Request{
				Binding: holds.Binding{User: "ada", Tool: "push"}, Name: "git__push", Reason: words[0], Arguments: json.RawMessage(`{"text":"` + strings.Join(words[1:], " ") + `"}`),
			})
			if err != nil {
				return err
			}
			held, err = host.OpenHolds(cfg).Get("ada", held.ID)
			if err == nil && (held.Reason != words[0] || !strings.Contains(string(held.Arguments), words[1])) {
				t.Errorf("the held call is %+v", held)
			}
			return err
		}},
	}
}

// writePlantedRun creates a run with a goal, a title and an output.
func writePlantedRun(ctx context.Context, s app.JournalStore, words []string) (run.Record, error) {
	key, now := make(run.Key, run.KeySize), time.Now().UTC()
	r := run.Record{ID: "r_1", User: "ada", Workflow: "w", Hash: "sha256:1", Goal: words[0], Title: words[1], Created: now, Updated: now, Seq: 1, Head: key.Root("r_1")}
	events := []run.Event{{Kind: run.KindCreated, At: now, By: run.By{User: "ada", Via: run.ViaAgent}, Data: fmt.Appendf(nil, `{"workflowId":"w","hash":"sha256:1","goal":%q}`, words[0])}}
	var err error
	if r.Head, err = make(run.Key, run.KeySize).ChainEvents(ctx, s, r.ID, 0, r.Head, events); err == nil {
		err = s.Create(ctx, run.Definition{Hash: r.Hash, Text: "{}"}, run.Commit{Record: r, Events: events, Terms: terms.Of(strings.Join(words, " "))})
	}
	if err == nil {
		err = appendPlanted(ctx, s, &r, "step_completed", fmt.Sprintf(`{"output":%q,"variables":{"v":%q}}`, strings.Join(words[2:10], " "), strings.Join(words[10:], " ")))
	}
	return r, err
}

// appendPlanted appends an event and a snapshot with its data.
func appendPlanted(ctx context.Context, s app.JournalStore, r *run.Record, kind, data string) error {
	events := []run.Event{{Kind: kind, At: r.Updated, By: run.By{User: "ada", Via: run.ViaAgent}, Data: []byte(data)}}
	var err error
	if r.Head, err = make(run.Key, run.KeySize).ChainEvents(ctx, s, r.ID, r.Seq, r.Head, events); err != nil {
		return err
	}
	r.Seq++
	return s.Append(ctx, run.Commit{Record: *r, Expected: r.Seq - 1, Events: events, Terms: terms.Of(data), Snapshot: &run.Snapshot{Seq: r.Seq, Head: r.Head, State: []byte(data)}})
}
