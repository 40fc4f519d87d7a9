package crashtest

import (
	"fmt"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/guideway-dev/guideway/internal/store/checkpoints"
	"github.com/guideway-dev/guideway/internal/testutil/crash"
)

// room is the size of a bounded directory.
const room = 16 << 20

// TestFullDisk checks saves with various amounts of free disk space. A save removes old
// sessions with a warning, or returns an error with a fix. The session in use keeps all its
// checkpoints, and after space is freed saves succeed.
func TestFullDisk(t *testing.T) {
	crash.SkipIfShort(t)
	t.Parallel()
	crash.NeedMounts(t)
	for _, store := range []string{"", checkpoints.StoreFiles} {
		t.Run("store "+store, func(t *testing.T) {
			t.Parallel()
			w := startWorker(t, place{Dir: t.TempDir(), Store: store, Room: room}).MustOpen()
			for n := range 30 {
				w.MustDo(order{Do: opSave, Text: text{Session: fmt.Sprint("old-", n), N: n, Size: 50_000}})
			}
			w.MustDo(order{Do: opMaintain})
			known := map[string]text{}
			n, full, cleaned := 0, 0, 0
			for _, left := range []int64{0, 4 << 10, 20 << 10, 100 << 10, 0} {
				w.MustDo(order{Do: opFill, Room: left})
				for range 60 {
					n++
					x := text{Session: "work", N: n, Size: 50_000}
					r, err := w.Do(order{Do: opSave, Text: x})
					if err != nil {
						t.Fatalf("the worker did not survive a full disk: %v", err)
					}
					if !r.OK() {
						full++
						if r.Code != guideway.CodeUnavailable || r.Fix == "" {
							t.Errorf("on a full disk, the reply is %s %s (fix %q)", r.Code, r.Message, r.Fix)
						}
						break
					}
					known[r.Checkpoint] = x
					for _, code := range r.Warnings {
						if code == checkpoint.WarnCleaned {
							cleaned++
						}
					}
				}
				askAll(t, w, known)
				w.MustDo(order{Do: opDrain})
				n++
				x := text{Session: "work", N: n, Size: 50_000}
				known[w.MustDo(order{Do: opSave, Text: x}).Checkpoint] = x
				w.MustDo(order{Do: opReopen})
				askAll(t, w, known)
			}
			if r := w.MustDo(order{Do: opVerify}); len(r.Damaged) > 0 {
				t.Errorf("damaged checkpoints: %v", r.Damaged)
			}
			if full == 0 || cleaned == 0 {
				t.Errorf("%d saves found no space and %d freed some: nothing was tested", full, cleaned)
			}
			t.Logf("%d saves found no space, %d freed some", full, cleaned)
			w.Shutdown()
			if t.Failed() {
				t.Log(w.Stderr())
			}
		})
	}
}

func askAll(t *testing.T, w *worker, known map[string]text) {
	t.Helper()
	for id, x := range known {
		if r := w.MustDo(order{Do: opLoad, Checkpoint: id}); r.Sum != x.contextSum() || r.Degraded {
			t.Fatalf("save %d is %+v", x.N, r)
		}
	}
}
