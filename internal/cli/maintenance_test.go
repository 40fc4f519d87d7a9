package cli

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/cli/server"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
)

// TestMaintenanceWaitsForFirstAnswer checks that maintenance starts a while after the first
// answer, or after a longer time if no request was answered. It does not start if the
// process ends first.
func TestMaintenanceWaitsForFirstAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var kept []time.Duration
		begin := func(idle time.Duration) *server.Maintenance {
			u := &server.Maintenance{Log: slog.New(slog.DiscardHandler), Delay: 2 * time.Second, Idle: idle, Run: func(context.Context) error {
				kept = append(kept, time.Since(began))
				return errors.New("an error for the log")
			}}
			u.Start()
			return u
		}
		u := begin(0)
		<-time.After(time.Hour)
		synctest.Wait()
		if len(kept) > 0 {
			t.Fatalf("maintenance started after %v, before the first answer", kept)
		}
		out := server.NotifyWriter{Writer: io.Discard, OnWrite: u.NotifyAnswered}
		for range 3 {
			if _, err := out.Write([]byte("{}\n")); err != nil {
				t.Fatal(err)
			}
			<-time.After(time.Second)
		}
		synctest.Wait()
		u.Close()
		if len(kept) != 1 || kept[0] != time.Hour+2*time.Second {
			t.Errorf("maintenance ran at %v, want one hour and two seconds", kept)
		}

		kept, began = nil, time.Now()
		u = begin(time.Minute)
		<-time.After(2 * time.Minute)
		synctest.Wait()
		u.Close()
		if len(kept) != 1 || kept[0] != time.Minute {
			t.Errorf("without a request, maintenance ran at %v, want one minute", kept)
		}

		kept = nil
		u = begin(time.Minute)
		u.NotifyAnswered()
		<-time.After(time.Second)
		u.Close()
		if len(kept) > 0 {
			t.Error("maintenance ran after the process had ended")
		}
	})
}

// Maintenance stops when the process ends.
func TestMaintenanceStopsWithProcess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		u := &server.Maintenance{Log: slog.New(slog.DiscardHandler), Run: func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}}
		u.Start()
		u.NotifyAnswered()
		synctest.Wait()
		u.Close() // if maintenance does not stop, Close blocks and the test fails with a deadlock
	})
}

// Maintenance at startup removes sessions without activity each time, checks all stored
// data at intervals, and creates nothing if the store is empty.
func TestMaintenanceOfCheckpoints(t *testing.T) {
	t.Parallel()
	host, out := newTerminal(t, map[string]string{"NO_COLOR": "1"})
	c := checkpointsOf(t, &host)
	cfg := c.Store.Cfg
	if err := server.MaintainCheckpoints(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(cfg.DataDir); !os.IsNotExist(err) {
		t.Error("maintenance without checkpoints created a data directory")
	}
	save := func(session string, ago time.Duration) {
		t.Helper()
		then := host
		then.Now = func() time.Time { return time.Now().Add(-ago) }
		c := checkpointsOf(t, &then)
		opened, err := c.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		user, err := auth.SystemUser()
		if err == nil {
			_, err = opened.Save(t.Context(), guideway.Principal{User: user, Client: app.ClientName}, checkpoint.SaveRequest{Session: session, Context: json.RawMessage(`{}`)})
		}
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
		c.Store.Close()
	}
	wantSessions := func(when string, want ...string) {
		t.Helper()
		out.Reset()
		Run(t.Context(), []string{"checkpoint", "list"}, host)
		if strings.Count(out.String(), "c_") != len(want) {
			t.Errorf("%s: the remaining sessions differ, want %v\n%s", when, want, out)
		}
		for _, session := range want {
			if !strings.Contains(out.String(), session) {
				t.Errorf("%s: %s was removed\n%s", when, session, out)
			}
		}
	}
	keep := func(env ...string) {
		t.Helper()
		at := host
		getenv := host.Getenv
		at.Getenv = func(name string) string {
			for i := 0; i+1 < len(env); i += 2 {
				if env[i] == name {
					return env[i+1]
				}
			}
			return getenv(name)
		}
		if err := server.MaintainCheckpoints(t.Context(), checkpointsOf(t, &at)); err != nil {
			t.Fatal(err)
		}
	}
	surveyed := func() time.Time {
		t.Helper()
		info, err := os.Stat(server.MaintenanceStampPath(cfg))
		if err != nil {
			t.Fatal(err)
		}
		return info.ModTime()
	}
	save("old", 31*24*time.Hour)
	save("young", 29*24*time.Hour)
	keep("GUIDEWAY_CHECKPOINTS_READ_ONLY", "true")
	wantSessions("read only", "old", "young")
	keep("GUIDEWAY_CHECKPOINT_RETENTION", "0")
	wantSessions("kept forever", "old", "young")
	first := surveyed()
	keep()
	wantSessions("after a month", "young")
	if !surveyed().Equal(first) {
		t.Error("all data was checked again immediately")
	}
	// The data is checked again after the interval, or if the clock was set back.
	for _, at := range []time.Time{time.Now().Add(-2 * server.MaintenanceInterval), time.Now().Add(server.MaintenanceInterval)} {
		if err := os.Chtimes(server.MaintenanceStampPath(cfg), at, at); err != nil {
			t.Fatal(err)
		}
		keep("GUIDEWAY_CHECKPOINT_RETENTION", "1h")
		if surveyed().Equal(at) {
			t.Errorf("the data was not checked, although the last check was at %v", at)
		}
	}
	wantSessions("with a shorter retention")
}
