package sqlite

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/store/rows"
)

const (
	sqlNow       = `CAST(unixepoch('subsec') * 1000 AS INTEGER)`
	sqlInsertJob = `INSERT OR REPLACE INTO jobs (run, user, due) VALUES (?, ?, ` + sqlNow + ` + ?)`
	sqlDeleteJob = `DELETE FROM jobs WHERE run = ?`
	sqlFindJob   = `SELECT 1 FROM jobs WHERE n = ?`
	sqlEndJob    = `DELETE FROM jobs WHERE n = ?`
	sqlDueJobs   = `SELECT run, user, n FROM jobs WHERE due <= ` + sqlNow + ` ORDER BY due LIMIT ?`
)

const (
	// jobInterval is how often a worker looks for jobs that became due or that other
	// processes stored. It is notified of jobs of its own process.
	jobInterval = time.Second
	// firstJobDelay and lastJobDelay are the delays before a failed job is executed again.
	firstJobDelay = time.Second
	lastJobDelay  = 5 * time.Minute
)

// insertJob returns the statement that stores a job. It replaces an earlier job of the run,
// which thereby gets a new number: a worker that has just found nothing to do must not remove
// the new job.
func insertJob(j run.Job) rows.Query {
	return statement(sqlInsertJob, j.Run, j.User, j.Delay.Milliseconds())
}

// Schedule implements cluster.Store.
func (s *Store) Schedule(ctx context.Context, j run.Job) error {
	defer s.notifyOfJob(run.Commit{Job: &j})
	return s.commitShared(ctx, "schedule the run "+j.Run, func(ctx context.Context, t *txn) error { return t.Queue(ctx, insertJob(j)) })
}

// notifyOfJob notifies the worker of this process after a commit with a job.
func (s *Store) notifyOfJob(c run.Commit) {
	if c.Job == nil {
		return
	}
	select {
	case s.newJob <- struct{}{}:
	default:
	}
}

// ReapInstances implements cluster.Store.
func (s *Store) ReapInstances(ctx context.Context, silent time.Duration) error {
	if ended, err := s.HasEndedInstances(ctx, silent); err != nil || !ended {
		return err
	}
	return s.commitShared(ctx, "take over the runs of processes that ended", func(ctx context.Context, t *txn) error {
		jobs, err := s.RemoveEndedInstances(ctx, t, silent)
		for _, j := range jobs {
			err = t.Queue(ctx, insertJob(j))
		}
		return err
	})
}

// dueJob is a job with its number in the table.
type dueJob struct {
	run.Job
	n int64
}

// jobWorker executes jobs.
type jobWorker struct {
	store *Store
	do    func(context.Context, run.Job) error
	work  sync.WaitGroup
	// ended is signaled when a job ends.
	ended chan struct{}

	mu sync.Mutex
	// busy has the runs whose jobs this worker executes; failed the number of failures and the
	// time of the next attempt.
	busy   map[string]bool
	failed map[string]jobFailure
}

type jobFailure struct {
	count int
	until time.Time
}

// WorkJobs implements cluster.Store. A job stays in the table until its run is driven or its
// execution ends, so that it is not lost if the process ends.
func (s *Store) WorkJobs(ctx context.Context, _ string, most int, do func(context.Context, run.Job) error) error {
	w := &jobWorker{store: s, do: do, ended: make(chan struct{}, 1), busy: map[string]bool{}, failed: map[string]jobFailure{}}
	defer w.work.Wait()
	ticker := time.NewTicker(jobInterval)
	defer ticker.Stop()
	for {
		if err := w.startJobs(ctx, most); err != nil && ctx.Err() == nil {
			s.o.Logger.WarnContext(ctx, "cannot read the jobs of machine runs", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-s.newJob:
		case <-w.ended:
		case <-ticker.C:
		}
	}
}

// startJobs starts due jobs, as far as the worker has room for them.
func (w *jobWorker) startJobs(ctx context.Context, most int) error {
	w.mu.Lock()
	busy, waiting := len(w.busy), len(w.failed)
	w.mu.Unlock()
	if busy >= most {
		return nil
	}
	// The jobs in progress and those that wait after a failure are in the table, too.
	q := statement(sqlDueJobs, most+waiting)
	list, err := rows.List(ctx, &w.store.methods, "read the due jobs", q, func(row rows.Scanner) (j dueJob, err error) {
		return j, row.Scan(&j.Run, &j.User, &j.n)
	})
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, j := range list {
		if w.busy[j.Run] || len(w.busy) >= most || time.Now().Before(w.failed[j.Run].until) {
			continue
		}
		w.busy[j.Run] = true
		w.work.Go(func() { w.execute(ctx, j) })
	}
	return nil
}

// execute executes a job, and removes the job if that succeeds.
func (w *jobWorker) execute(ctx context.Context, j dueJob) {
	err := w.do(ctx, j.Job)
	if err == nil {
		err = w.store.endJob(context.WithoutCancel(ctx), j.n)
	}
	w.mu.Lock()
	delete(w.busy, j.Run)
	if f := w.failed[j.Run]; err != nil {
		f.until = time.Now().Add(min(firstJobDelay<<min(f.count, 20), lastJobDelay))
		f.count++
		w.failed[j.Run] = f
	} else {
		delete(w.failed, j.Run)
	}
	w.mu.Unlock()
	select {
	case w.ended <- struct{}{}:
	default:
	}
}

// endJob removes a job, unless the drive of its run has removed it.
func (s *Store) endJob(ctx context.Context, n int64) error {
	var one int64
	err := rows.QueryOne(ctx, &s.methods, "look up a job", errNoRow, statement(sqlFindJob, n), &one)
	if errors.Is(err, errNoRow) {
		return nil
	}
	if err != nil {
		return err
	}
	return s.commitShared(ctx, "end a job", func(ctx context.Context, t *txn) error { return t.Queue(ctx, statement(sqlEndJob, n)) })
}
