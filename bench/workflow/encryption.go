package workflow

import (
	"context"
	"path/filepath"
)

// measureEncryption measures workflow_continue at step 10 without and with encryption, by
// two servers in turns.
func (p plan) measureEncryption(ctx context.Context, w *workplace, ours *target, rec record) error {
	var servers [2]*server
	var results [2]measured
	for i, mode := range []string{"disabled", "key-file"} {
		t, err := w.durableTarget(ours, "encryption-"+mode)
		if err != nil {
			return err
		}
		t = t.withEnv("GUIDEWAY_ENCRYPTION="+mode, "GUIDEWAY_ENCRYPTION_KEY_FILE="+filepath.Join(w.dir, "encryption-"+mode, "secret", "key"))
		if servers[i], err = t.startServer(ctx, legacy); err != nil {
			return err
		}
		defer servers[i].stop()
		if err := servers[i].initializeSession(ctx); err != nil {
			return err
		}
		results[i].pid = servers[i].processID()
	}
	for len(results[1].times) < p.calls/2 {
		for i, s := range servers {
			d := &durableWalk{}
			if err := d.startRun(ctx, s); err != nil {
				return err
			}
			if err := d.continueUntil(ctx, s, earlyStep-together/2); err != nil {
				return err
			}
			if err := results[i].measureSteps(ctx, s, d, together); err != nil {
				return err
			}
		}
	}
	plain, sealed := results[0].toFigure(), results[1].toFigure()
	rec(rowContinuePlain, plain)
	rec(rowContinueSealed, sealed)
	rec(rowSealedRatio, figure{Value: sealed.Value / plain.Value, N: len(results[1].times)})
	return nil
}
