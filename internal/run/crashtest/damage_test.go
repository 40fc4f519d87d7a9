package crashtest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/testutil/crash"
)

// TestDamagedFiles checks workers on truncated files and files with noise. A worker returns
// an error with a fix, or the correct result if it does not read the damaged part. It never
// crashes, and never returns an event that was not written.
func TestDamagedFiles(t *testing.T) {
	t.Parallel()
	shelf, err := newShelf()
	if err != nil {
		t.Fatal(err)
	}
	whole := workerPlace{Dir: t.TempDir()}
	l := newLane("client", rand.New(rand.NewPCG(1, 1)), shelf.inSteps())
	w := startWorker(t, whole).MustOpen()
	if err := l.sendCommands(w, 60); err != nil {
		t.Fatal(err)
	}
	closed, logged := t.TempDir(), t.TempDir()
	copyPlace(t, whole.Dir, logged) // with its write-ahead log
	w.Shutdown()
	copyPlace(t, whole.Dir, closed)
	for _, seed := range crash.Seeds(t) {
		for i := range crash.Amount(t, "GUIDEWAY_CRASH_DAMAGES", 12, 12) {
			t.Run(fmt.Sprintf("seed %d/%d", seed, i), func(t *testing.T) {
				t.Parallel()
				random := rand.New(rand.NewPCG(seed, uint64(i)))
				p := workerPlace{Dir: crash.Dir(t)}
				from, name := closed, p.databasePath()
				if random.IntN(3) == 0 {
					from = logged
					if random.IntN(2) == 0 {
						name += "-wal"
					}
				}
				copyPlace(t, from, p.Dir)
				t.Logf("%s: %s", filepath.Base(name), damageFile(t, name, random))
				useDamaged(t, p, l)
			})
		}
	}
}

// copyPlace copies all files. Only the current user can access the copies.
func copyPlace(t *testing.T, from, to string) {
	t.Helper()
	err := os.CopyFS(to, os.DirFS(from))
	if err == nil {
		err = filepath.WalkDir(to, func(name string, e os.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			return os.Chmod(name, 0o600)
		})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// damageFile damages a file and returns a description of the damage.
func damageFile(t *testing.T, name string, random *rand.Rand) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	const page = 4096
	at := random.IntN(len(text))
	var how string
	switch random.IntN(5) {
	case 0:
		text, how = text[:at], fmt.Sprintf("cut off at %d of %d", at, len(text))
	case 1:
		at = at / page * page
		text, how = text[:at], fmt.Sprintf("cut off at page %d", at/page)
	case 2:
		at = at / page * page
		noise := text[at:min(at+page, len(text))]
		for i := range noise {
			noise[i] = byte(random.Uint32())
		}
		how = fmt.Sprintf("page %d is noise", at/page)
	case 3:
		clear(text[at:min(at+page, len(text))])
		how = fmt.Sprintf("zeros from %d on", at)
	default:
		for range 20 {
			text[random.IntN(len(text))] ^= byte(1 << random.IntN(8))
		}
		how = "20 flipped bits"
	}
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return how
}

// useDamaged makes a worker open a damaged journal and execute several orders for each run.
func useDamaged(t *testing.T, p workerPlace, l *modelClient) {
	t.Helper()
	w := startWorker(t, p)
	defer w.Kill()
	r, err := w.Opened()
	if err != nil {
		t.Fatalf("the worker crashed while opening: %s", w.Stderr())
	}
	if !r.OK() {
		mustSayWhatToDo(t, "open", r)
		return
	}
	for _, led := range l.runs {
		if led.id == "" {
			continue
		}
		report, shown := reply{}, reply{}
		for _, o := range []order{
			{Do: opStatus, Run: led.id},
			{Do: opVerify},
			{Do: opEvents, Run: led.id},
			{Do: opContinue, Handle: led.handle, Output: "one more done"},
			{Do: opStart, Goal: "start again"},
			{Do: opStatus, Run: led.id},
		} {
			r, err := w.Do(o)
			switch {
			case err != nil:
				t.Fatalf("the worker crashed on %s: %s", o.Do, w.Stderr())
			case !r.OK():
				mustSayWhatToDo(t, o.Do, r)
			case o.Do == opVerify:
				report = r
			case o.Do == opEvents:
				shown = r
			}
		}
		if shown.Run == "" {
			continue
		}
		whole, err := led.isPrefix(shown.Events)
		if err != nil {
			t.Error(err)
		}
		if !whole && report.Report != nil && len(report.Report.Faults) == 0 {
			t.Errorf("run %s has %d events, of %d, but Verify reports no faults", led.id, len(shown.Events), led.eventCount())
		}
	}
}

// isPrefix returns an error unless events are the first events of a run. whole reports
// whether they are all events of the run.
func (led *runLedger) isPrefix(events []run.Event) (whole bool, err error) {
	for n := range led.facts {
		part := &runLedger{id: led.id, facts: led.facts[:n], tried: led.tried}
		if _, err := part.compareEvents(events); err == nil {
			return false, nil
		}
	}
	_, err = (&runLedger{id: led.id, facts: led.facts, refused: led.refused, tried: led.tried}).compareEvents(events)
	return err == nil, err
}

// eventCount returns the number of events of a run, including its creation and refused
// attempts.
func (led *runLedger) eventCount() int { return 1 + len(led.facts) + led.refused }

// mustSayWhatToDo checks that an error on a damaged journal is a refusal or has a fix.
func mustSayWhatToDo(t *testing.T, what op, r reply) {
	t.Helper()
	switch {
	case r.Rule != "": // the run was not found because of the damage
	case r.Code == guideway.CodeUnavailable && r.Fix != "":
	default:
		t.Errorf("%s returned the code %q: %s (fix: %q)", what, r.Code, r.Message, r.Fix)
	}
}
