package postgres

import (
	"context"
	"fmt"
	"hash/fnv"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/store/rows"
)

// jobQueue is the name of the queue of machine runs.
const jobQueue = "machines"

const (
	// keepJobs is how long ended jobs stay in their table.
	keepJobs = time.Minute
	// stopTimeout bounds the wait for jobs in progress when a worker stops.
	stopTimeout = 10 * time.Second
)

// jobArgs are the arguments of a job in River's table.
type jobArgs struct{ run.Job }

// Kind implements river.JobArgs.
func (jobArgs) Kind() string { return "machine_run" }

// withJobs runs a transaction and stores the jobs that do returns.
func (s *Store) withJobs(ctx context.Context, do func(context.Context, pgx.Tx) ([]run.Job, error)) error {
	client, err := s.jobClient(ctx)
	if err != nil {
		return err
	}
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		list, err := do(ctx, tx)
		if err != nil || len(list) == 0 {
			return err
		}
		params := make([]river.InsertManyParams, len(list))
		for i, j := range list {
			params[i] = river.InsertManyParams{Args: jobArgs{j}, InsertOpts: &river.InsertOpts{Queue: jobQueue}}
			if j.Delay > 0 {
				opts := params[i].InsertOpts
				if err := tx.QueryRow(ctx, `select clock_timestamp() + $1::interval`, j.Delay).Scan(&opts.ScheduledAt); err != nil {
					return err
				}
			}
		}
		_, err = client.InsertManyFastTx(ctx, tx, params)
		return err
	})
}

// Schedule implements cluster.Store.
func (s *Store) Schedule(ctx context.Context, j run.Job) error {
	return s.retryWrite(ctx, "schedule the run "+j.Run, func(ctx context.Context, _ bool) error {
		return s.withJobs(ctx, func(context.Context, pgx.Tx) ([]run.Job, error) { return []run.Job{j}, nil })
	})
}

// sqlReleaseJobs releases the jobs in progress of instances that do not exist. River itself
// does this after an hour.
const sqlReleaseJobs = `update river_job set state = 'available', attempt = greatest(attempt - 1, 0) where kind = $1 and state = 'running'
	and convert_to(attempted_by[array_upper(attempted_by, 1)], 'UTF8') not in (select id from instances)`

// ReapInstances implements cluster.Store.
func (s *Store) ReapInstances(ctx context.Context, silent time.Duration) error {
	ended, err := s.HasEndedInstances(ctx, silent)
	if err == nil && ended {
		err = s.scheduleOrphans(ctx, silent)
	}
	if err != nil {
		return err
	}
	return s.retryWrite(ctx, "release the jobs of processes that ended", func(ctx context.Context, _ bool) error {
		_, err := s.jobClient(ctx)
		if err == nil {
			_, err = s.pool.Exec(ctx, sqlReleaseJobs, jobArgs{}.Kind())
		}
		return err
	})
}

// scheduleOrphans removes the instances that were silent, and schedules the runs of instances
// that do not exist.
func (s *Store) scheduleOrphans(ctx context.Context, silent time.Duration) error {
	return s.retryWrite(ctx, "take over the runs of processes that ended", func(ctx context.Context, _ bool) error {
		return s.withJobs(ctx, func(ctx context.Context, tx pgx.Tx) ([]run.Job, error) {
			return s.RemoveEndedInstances(ctx, reapTx{conn{tx}, tx}, silent)
		})
	})
}

// reapTx is the transaction of ReapInstances.
type reapTx struct {
	conn
	tx pgx.Tx
}

// Queue implements rows.Tx.
func (t reapTx) Queue(ctx context.Context, list ...rows.Query) error {
	for _, q := range list {
		if _, err := t.tx.Exec(ctx, q.Text, q.Args...); err != nil {
			return err
		}
	}
	return nil
}

// jobClient returns the client that stores jobs. The first call creates or migrates River's
// tables.
func (s *Store) jobClient(ctx context.Context) (*river.Client[pgx.Tx], error) {
	s.jobs.mu.Lock()
	defer s.jobs.mu.Unlock()
	if s.jobs.client != nil {
		return s.jobs.client, nil
	}
	if err := s.migrateJobs(ctx); err != nil {
		return nil, err
	}
	client, err := river.NewClient(riverpgxv5.New(s.pool), &river.Config{Schema: s.schema, Logger: slog.New(slog.DiscardHandler)})
	s.jobs.client = client
	return client, err
}

// migrateJobs migrates River's tables. If processes start at the same time, one migrates and
// the others wait.
func (s *Store) migrateJobs(ctx context.Context) error {
	migrator, err := rivermigrate.New(riverpgxv5.New(s.pool), &rivermigrate.Config{Schema: s.schema, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	if found, err := migrator.Validate(ctx, nil); err == nil && found.OK {
		return nil
	}
	c, err := s.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer c.Release()
	name := fnv.New64a()
	fmt.Fprintf(name, "guideway jobs in %s", s.schema)
	lock := int64(name.Sum64())
	if _, err := c.Exec(ctx, `select pg_advisory_lock($1)`, lock); err != nil {
		return err
	}
	defer func() { _, _ = c.Exec(context.WithoutCancel(ctx), `select pg_advisory_unlock($1)`, lock) }() // a closed connection has no locks
	_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	return err
}

// jobWorker executes jobs for River.
type jobWorker struct {
	river.WorkerDefaults[jobArgs]
	do func(context.Context, run.Job) error
}

// Work implements river.Worker.
func (w *jobWorker) Work(ctx context.Context, j *river.Job[jobArgs]) error {
	return w.do(ctx, j.Args.Job)
}

// Timeout implements river.Worker: a drive has no time limit.
func (w *jobWorker) Timeout(*river.Job[jobArgs]) time.Duration { return -1 }

// WorkJobs implements cluster.Store.
func (s *Store) WorkJobs(ctx context.Context, instance string, most int, do func(context.Context, run.Job) error) error {
	if err := s.retryWrite(ctx, "create the tables of jobs", func(ctx context.Context, _ bool) error {
		_, err := s.jobClient(ctx)
		return err
	}); err != nil {
		return err
	}
	workers := river.NewWorkers()
	river.AddWorker(workers, &jobWorker{do: do})
	client, err := river.NewClient(riverpgxv5.New(s.pool), &river.Config{
		ID: instance, Schema: s.schema, Workers: workers, Queues: map[string]river.QueueConfig{jobQueue: {MaxWorkers: most}},
		CompletedJobRetentionPeriod: keepJobs, CancelledJobRetentionPeriod: keepJobs, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	if err := client.Start(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	<-ctx.Done()
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	return client.StopAndCancel(stopping)
}
