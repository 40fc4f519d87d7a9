package storetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/run"
)

// instanceTests cover the jobs of machine runs and the instances that execute them.
func instanceTests() []subtest {
	return []subtest{
		{"a commit stores its job, or neither", testJobOfCommit},
		{"a job is executed after its delay, by any instance", testDelayedJob},
		{"a failed job is executed again", testFailedJob},
		{"workers execute at most a number of jobs at a time", testBoundedJobs},
		{"an instance exists until it leaves or is silent", testInstances},
		{"the runs of ended instances are scheduled once", testReapedRuns},
		{"the jobs in progress of ended instances are executed by others", testReapedJobs},
		{"an instance learns of its cancelled runs", testCancelledDrives},
	}
}

// worker executes the jobs of a store until the test ends.
type worker struct{ jobs chan string }

// startWorker starts a worker. do may be nil.
func startWorker(t *testing.T, s Store, instance string, most int, do func(string) error) worker {
	t.Helper()
	w := worker{make(chan string, 100)}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- s.WorkJobs(ctx, instance, most, func(_ context.Context, j run.Job) error {
			w.jobs <- j.User + "/" + j.Run
			if do != nil {
				return do(j.Run)
			}
			return nil
		})
	}()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("the worker: %v", err)
		}
	})
	return w
}

// wantJobs waits for jobs in an order.
func (w worker) wantJobs(t *testing.T, want ...string) {
	t.Helper()
	for _, id := range want {
		select {
		case got := <-w.jobs:
			if got != id {
				t.Fatalf("the job of %s was executed, want %s", got, id)
			}
		case <-time.After(time.Minute):
			t.Fatalf("the job of %s was not executed", id)
		}
	}
}

func testJobOfCommit(t *testing.T, f *fixture) {
	s := f.openStore(t)
	c := createCommit(newRecord("m_1", "ann"))
	c.Job = &run.Job{User: "ann", Run: "m_1"}
	requireNoError(t, s.Create(t.Context(), newDefinition(c.Record), c))
	stale := appendCommit(c.Record, "stale")
	stale.Job = &run.Job{User: "ann", Run: "m_lost"}
	stale.Expected, stale.Record.Seq = 7, 8
	stale.Events[0].Seq = 8
	checkCode(t, s.Append(t.Context(), stale), guideway.CodeConflict, "a stale append")
	w := startWorker(t, f.openStore(t), "i_1", 1, nil)
	w.wantJobs(t, "ann/m_1")
	next := appendCommit(c.Record, "next")
	next.Job = &run.Job{User: "ann", Run: "m_2"}
	requireNoError(t, s.Append(t.Context(), next))
	w.wantJobs(t, "ann/m_2")
	requireNoError(t, s.Schedule(t.Context(), run.Job{User: "bob", Run: "m_1"}))
	w.wantJobs(t, "bob/m_1")
}

func testDelayedJob(t *testing.T, f *fixture) {
	s := f.openStore(t)
	requireNoError(t, s.Schedule(t.Context(), run.Job{User: "ann", Run: "m_later", Delay: 1500 * time.Millisecond}))
	requireNoError(t, s.Schedule(t.Context(), run.Job{User: "ann", Run: "m_now"}))
	startWorker(t, s, "i_1", 2, nil).wantJobs(t, "ann/m_now", "ann/m_later")
}

func testFailedJob(t *testing.T, f *fixture) {
	s := f.openStore(t)
	requireNoError(t, s.Schedule(t.Context(), run.Job{User: "ann", Run: "m_1"}))
	fails := make(chan error, 1)
	fails <- errors.New("not now")
	close(fails)
	w := startWorker(t, s, "i_1", 2, func(string) error { return <-fails })
	w.wantJobs(t, "ann/m_1", "ann/m_1")
}

func testBoundedJobs(t *testing.T, f *fixture) {
	s := f.openStore(t)
	for _, id := range []string{"m_1", "m_2", "m_3", "m_4"} {
		requireNoError(t, s.Schedule(t.Context(), run.Job{User: "ann", Run: id}))
	}
	release := make(chan struct{})
	w := startWorker(t, s, "i_1", 3, func(string) error {
		<-release
		return nil
	})
	for range 3 {
		<-w.jobs
	}
	requireNoError(t, s.Schedule(t.Context(), run.Job{User: "ann", Run: "m_5"}))
	if len(w.jobs) > 0 {
		t.Errorf("a fourth job was started: %s", <-w.jobs)
	}
	close(release)
	for range 2 {
		<-w.jobs
	}
}

func testInstances(t *testing.T, f *fixture) {
	s, other := f.openStore(t), f.openStore(t)
	check := func(id string, want bool) {
		t.Helper()
		got, err := other.HasInstance(t.Context(), id)
		requireNoError(t, err)
		if got != want {
			t.Fatalf("the instance %s exists: %v, want %v", id, got, want)
		}
	}
	beat := func(id string, register, want bool) {
		t.Helper()
		known, _, err := s.Beat(t.Context(), id, register)
		requireNoError(t, err)
		if known != want {
			t.Fatalf("the instance %s is known: %v, want %v", id, known, want)
		}
	}
	beat("i_1", false, false)
	check("i_1", false)
	for range 2 {
		beat("i_1", true, true)
	}
	beat("i_1", false, true)
	beat("i_2", true, true)
	check("i_1", true)
	requireNoError(t, other.ReapInstances(t.Context(), time.Hour))
	check("i_1", true)
	requireNoError(t, other.LeaveInstance(t.Context(), "i_2"))
	check("i_2", false)
	requireNoError(t, other.ReapInstances(t.Context(), -time.Hour)) // all are silent since an hour from now
	check("i_1", false)
	beat("i_1", false, false)
}

// takeDrive appends a commit that changes the drive of a run.
func takeDrive(t *testing.T, s Store, r run.Record, d run.DriveChange) run.Record {
	t.Helper()
	c := appendCommit(r, "drive")
	c.Drive = &d
	requireNoError(t, s.Append(t.Context(), c))
	return c.Record
}

func testReapedRuns(t *testing.T, f *fixture) {
	s, other := f.openStore(t), f.openStore(t)
	taken := run.DriveChange{Kind: run.DriveTaken, Instance: "i_1"}
	for _, id := range []string{"i_1", "i_2"} {
		_, _, err := s.Beat(t.Context(), id, true)
		requireNoError(t, err)
	}
	takeDrive(t, s, createRun(t, s, newRecord("m_1", "ann")), taken)
	released := takeDrive(t, s, createRun(t, s, newRecord("m_2", "ann")), taken)
	takeDrive(t, s, released, run.DriveChange{Kind: run.DriveReleased})
	takeDrive(t, s, createRun(t, s, newRecord("m_3", "ann")), run.DriveChange{Kind: run.DriveTaken, Instance: "i_1", Attended: true})
	moved := takeDrive(t, s, createRun(t, s, newRecord("m_4", "ann")), taken)
	takeDrive(t, s, moved, run.DriveChange{Kind: run.DriveTaken, Instance: "i_2"})
	w := startWorker(t, s, "i_2", 4, nil)
	requireNoError(t, s.ReapInstances(t.Context(), time.Hour))
	requireNoError(t, s.LeaveInstance(t.Context(), "i_1"))
	for _, err := range runConcurrently(4, func(i int) error { return []Store{s, other}[i%2].ReapInstances(context.Background(), time.Hour) }) {
		requireNoError(t, err)
	}
	w.wantJobs(t, "ann/m_1")
	requireNoError(t, s.Schedule(t.Context(), run.Job{User: "ann", Run: "m_last"}))
	w.wantJobs(t, "ann/m_last")
}

func testReapedJobs(t *testing.T, f *fixture) {
	s, other := f.openStore(t), f.openStore(t)
	for _, id := range []string{"i_1", "i_2"} {
		_, _, err := s.Beat(t.Context(), id, true)
		requireNoError(t, err)
	}
	requireNoError(t, s.Schedule(t.Context(), run.Job{User: "ann", Run: "m_1"}))
	startWorker(t, s, "i_1", 1, func(string) error {
		<-t.Context().Done()
		return nil
	}).wantJobs(t, "ann/m_1")
	requireNoError(t, other.LeaveInstance(t.Context(), "i_1"))
	requireNoError(t, other.ReapInstances(t.Context(), time.Hour))
	w := startWorker(t, other, "i_2", 2, nil)
	w.wantJobs(t, "ann/m_1")
	requireNoError(t, other.ReapInstances(t.Context(), time.Hour)) // i_2 exists
	requireNoError(t, s.Schedule(t.Context(), run.Job{User: "ann", Run: "m_last"}))
	w.wantJobs(t, "ann/m_last")
}

func testCancelledDrives(t *testing.T, f *fixture) {
	s := f.openStore(t)
	_, _, err := s.Beat(t.Context(), "i_1", true)
	requireNoError(t, err)
	taken := run.DriveChange{Kind: run.DriveTaken, Instance: "i_1"}
	takeDrive(t, s, createRun(t, s, newRecord("m_1", "ann")), taken)
	r := takeDrive(t, s, createRun(t, s, newRecord("m_2", "ann")), taken)
	r = takeDrive(t, s, r, run.DriveChange{Kind: run.DriveCancelled})
	takeDrive(t, s, createRun(t, s, newRecord("m_3", "ann")), run.DriveChange{Kind: run.DriveCancelled})
	_, cancelled, err := s.Beat(t.Context(), "i_1", false)
	requireNoError(t, err)
	checkEqual(t, "cancelled runs", cancelled, []string{"m_2"})
	takeDrive(t, s, r, run.DriveChange{Kind: run.DriveReleased})
	_, cancelled, err = s.Beat(t.Context(), "i_1", false)
	requireNoError(t, err)
	checkEqual(t, "cancelled runs", cancelled, []string{})
}
