package contexts

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/run"
)

// AutoSaverOptions configure an AutoSaver. Checkpoints must not be nil.
type AutoSaverOptions struct {
	Checkpoints Checkpoints
	// Off disables automatic saves.
	Off bool
	// Queue bounds the pending jobs; the default is 64.
	Queue int
	// Now is the clock; the default is time.Now.
	Now func() time.Time
	// Logger logs errors; it may be nil.
	Logger *slog.Logger
}

// AutoSaver saves checkpoints automatically in the background: of a run at the end of each
// phase and loop, at each gate and at its end, and of a stateless walk that names a
// session. Health reports errors; they fail no call. It is the observer of the run service.
type AutoSaver struct {
	o     AutoSaverOptions
	queue chan job
	late  backfillQueue
	done  sync.WaitGroup

	mu     sync.Mutex
	closed bool
	health Health
	// sizes maps a run to the token count of its context, if that is at least threshold.
	sizes     map[string]int
	threshold int
	prepare   func(ctx context.Context, c run.Caller, id string) error
	// preparing are the runs for which the preparation of the brief is queued.
	preparing map[string]bool
	// written returns the model-written summaries of a run for its checkpoints.
	written func(id string) map[string]string
	// slow are jobs that wait for other services; they run in a second goroutine.
	slow   chan func(context.Context)
	giveUp context.CancelFunc
	// walks are the hashes of the latest contexts of walks, by user and session.
	walks map[string][sha256.Size]byte
}

var _ run.Observer = (*AutoSaver)(nil)

// Health is the state of an AutoSaver.
type Health struct {
	// Off reports that automatic saves are disabled.
	Off bool `json:"off,omitempty"`
	// Saved and Failed count the checkpoints that were saved or could not be saved, Dropped
	// the checkpoints that were dropped because the queue was full, and Waiting the pending
	// ones.
	Saved   int64 `json:"saved"`
	Failed  int64 `json:"failed,omitempty"`
	Dropped int64 `json:"dropped,omitempty"`
	Waiting int   `json:"waiting,omitempty"`
	// Error is the last error, ErrorAt its time; a later successful save clears both.
	Error   string    `json:"error,omitempty"`
	ErrorAt time.Time `json:"errorAt,omitzero"`
}

// userNotice returns the text that an agent should report to the user, or "".
func (h Health) userNotice() string {
	if h.Error == "" {
		return ""
	}
	return "the last automatic checkpoint could not be saved: " + h.Error
}

// job is a task of the background goroutine.
type job struct {
	what string
	do   func(context.Context) error
	// saves marks a job that saves a checkpoint.
	saves bool
}

// NewAutoSaver returns an AutoSaver. It must be closed.
func NewAutoSaver(o AutoSaverOptions) (*AutoSaver, error) {
	if o.Checkpoints == nil {
		return nil, guideway.Errorf(guideway.CodeInternal, "an auto saver needs a checkpoint service")
	}
	o.Queue = cmp.Or(o.Queue, 64)
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	k := &AutoSaver{
		o: o, queue: make(chan job, o.Queue), health: Health{Off: o.Off},
		sizes: map[string]int{}, preparing: map[string]bool{}, walks: map[string][sha256.Size]byte{},
	}
	k.late.runs = make(chan string, maxWaiting)
	k.slow = make(chan func(context.Context), maxSlow)
	ctx, giveUp := context.WithCancel(context.Background())
	k.giveUp = giveUp
	k.done.Go(k.runJobs)
	k.done.Go(func() {
		for do := range k.slow {
			do(ctx)
		}
	})
	return k, nil
}

// Close finishes the pending jobs, except the slow ones, which it cancels. Later jobs are
// dropped.
func (k *AutoSaver) Close() error {
	k.mu.Lock()
	already := k.closed
	k.closed = true
	if !already {
		close(k.queue)
		close(k.slow)
		k.giveUp()
	}
	k.mu.Unlock()
	k.done.Wait()
	return nil
}

// Health returns the state of the automatic saves.
func (k *AutoSaver) Health() Health {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.health
}

// setPrepare sets the function that prepares the brief of a run in the background. It is
// called if the run's context has at least threshold tokens, and after a part of the run
// has ended if a model writes summaries. With a threshold of 0 the size of the context is
// ignored.
func (k *AutoSaver) setPrepare(threshold int, prepare func(context.Context, run.Caller, string) error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.threshold, k.prepare = threshold, prepare
}

// largeTokens returns the token count of a run's context if it is at least the threshold,
// otherwise 0.
func (k *AutoSaver) largeTokens(id string) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.sizes[id]
}

// maxSlow bounds the queued slow jobs.
const maxSlow = 16

// enqueueSlow queues a job that may take long; Close cancels it.
func (k *AutoSaver) enqueueSlow(do func(context.Context)) (taken bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return false
	}
	select {
	case k.slow <- do:
		return true
	default:
		return false
	}
}

// setWritten sets the function that returns the summaries for the checkpoints of a run.
func (k *AutoSaver) setWritten(written func(id string) map[string]string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.written = written
}

// enqueueJob queues a job unless the queue is full or closed, and reports whether it did.
func (k *AutoSaver) enqueueJob(j job) (taken bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return false
	}
	select {
	case k.queue <- j:
		if j.saves {
			k.health.Waiting++
		}
		return true
	default:
		if j.saves {
			k.health.Dropped++
			k.o.Logger.Warn("an automatic checkpoint was dropped: the queue is full", "checkpoint", j.what)
		}
		return false
	}
}

// jobTime bounds one job, so that a hanging store does not block Close.
const jobTime = 30 * time.Second

// runJobs runs the queued jobs, and backfills newly seen runs in between.
func (k *AutoSaver) runJobs() {
	for {
		select {
		case j, open := <-k.queue:
			if !open {
				k.backfillAll()
				return
			}
			k.carryOut(j)
			continue
		default:
		}
		select {
		case j, open := <-k.queue:
			if !open {
				k.backfillAll()
				return
			}
			k.carryOut(j)
		case id := <-k.late.runs:
			k.backfillWaiting(id)
		}
	}
}

func (k *AutoSaver) carryOut(j job) {
	ctx, cancel := context.WithTimeout(context.Background(), jobTime)
	defer cancel()
	err := j.do(ctx)
	if j.saves {
		k.mu.Lock()
		k.health.Waiting--
		k.mu.Unlock()
		k.countSave(err)
	}
	if err != nil && !isMoot(err) {
		k.o.Logger.Warn("cannot complete background work on a context", "what", j.what, "error", err)
	}
}

// isMoot reports whether err means that a checkpoint is no longer needed: it was deleted,
// or the run has a later checkpoint.
func isMoot(err error) bool { return guideway.ErrorCode(err) == guideway.CodeRefused }

// countSave counts the result of a save.
func (k *AutoSaver) countSave(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if isMoot(err) {
		return
	}
	if err != nil {
		k.health.Failed++
		k.health.Error, k.health.ErrorAt = err.Error(), k.o.Now().UTC()
		return
	}
	k.health.Saved++
	k.health.Error, k.health.ErrorAt = "", time.Time{}
}

// Committed implements run.Observer.
func (k *AutoSaver) Committed(_ context.Context, c run.Committed) {
	k.checkSize(c)
	names, tags := saveTriggers(c.Facts)
	if k.o.Off || len(names) == 0 {
		return
	}
	name := truncateText(strings.Join(names, "; "), 200)
	k.enqueueJob(job{what: c.Record.ID + " " + name, saves: true, do: func(ctx context.Context) error {
		k.backfillWaiting(c.Record.ID) // save missing checkpoints before new ones
		return k.saveCommitted(ctx, c, name, tags)
	}})
	if !slices.Equal(tags, []string{tagGate}) {
		k.requestSummary(c.Record)
	}
}

// requestSummary queues the preparation of a run's brief after a part of the run has ended,
// if a model writes summaries: the preparation requests the missing summaries.
func (k *AutoSaver) requestSummary(rec run.Record) {
	k.mu.Lock()
	written, prepare := k.written, k.prepare
	k.mu.Unlock()
	if written == nil || prepare == nil {
		return
	}
	caller := run.Caller{Principal: guideway.Principal{User: rec.User}, Via: run.ViaServer}
	k.enqueueJob(job{what: "the summary of " + rec.ID, do: func(ctx context.Context) error { return prepare(ctx, caller, rec.ID) }})
}

// checkSize records the token count of a run's context if it is at least threshold, and
// queues the preparation of the run's brief.
func (k *AutoSaver) checkSize(c run.Committed) {
	if len(c.Facts) == 0 {
		return
	}
	k.mu.Lock()
	threshold, prepare := k.threshold, k.prepare
	k.mu.Unlock()
	if threshold == 0 || prepare == nil {
		return
	}
	tokens := estimateTokens(c.State.Vars)
	k.mu.Lock()
	if tokens < threshold {
		delete(k.sizes, c.Record.ID)
		k.mu.Unlock()
		return
	}
	putCached(k.sizes, c.Record.ID, tokens)
	waits := k.preparing[c.Record.ID]
	k.preparing[c.Record.ID] = true
	k.mu.Unlock()
	if waits {
		return
	}
	caller := run.Caller{Principal: guideway.Principal{User: c.Record.User}, Via: run.ViaServer}
	taken := k.enqueueJob(job{what: "the brief of " + c.Record.ID, do: func(ctx context.Context) error {
		k.clearPreparing(c.Record.ID)
		return prepare(ctx, caller, c.Record.ID)
	}})
	if !taken {
		k.clearPreparing(c.Record.ID)
	}
}

// clearPreparing allows the brief of a run to be prepared again.
func (k *AutoSaver) clearPreparing(id string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.preparing, id)
}

func (k *AutoSaver) saveCommitted(ctx context.Context, c run.Committed, name string, tags []string) error {
	pos := c.Flow.PositionOf(c.State)
	at := placeOf(c.Record, c.Flow.Status(c.State), pos)
	k.mu.Lock()
	written := k.written
	k.mu.Unlock()
	if written != nil {
		at.Written = written(c.Record.ID)
	}
	doc, err := encodeRun(c.State.Vars, nil, at)
	if err != nil {
		return err
	}
	_, err = k.o.Checkpoints.Save(ctx, guideway.Principal{User: c.Record.User, Client: c.By.Client}, checkpoint.SaveRequest{
		Session: c.Record.ID, Run: c.Record.ID, RunSeq: c.Record.Seq, Context: doc, Workflow: c.Record.Workflow,
		Project: c.Record.Project.ID, Agent: c.By.Client, Name: name, Tags: withTags(tags, tagsOf(c.Marks)...),
		// Save once, because another process may backfill the same checkpoint.
		Kind: checkpoint.KindAuto, Once: true,
	})
	return err
}

// The tags of automatic checkpoints.
const (
	tagPhase = "phase-end"
	tagLoop  = "loop-end"
	tagGate  = "gate"
	tagEnd   = "run-end"
)

// saveTriggers returns the names and tags of the checkpoint for the events of a command.
// Both are empty if the events need no checkpoint.
func saveTriggers(facts []engine.Event) (names, tags []string) {
	add := func(tag, name string) {
		names = append(names, strings.TrimSpace(name))
		if !slices.Contains(tags, tag) {
			tags = append(tags, tag)
		}
	}
	for _, f := range facts {
		switch f.Kind {
		case engine.EventPhaseExited:
			add(tagPhase, "end of phase "+f.Step)
		case engine.EventLoopEnded, engine.EventLoopCompleted, engine.EventLoopBroken:
			add(tagLoop, "end of loop "+f.Step)
		case engine.EventGateOpened, engine.EventCheckpointReached, engine.EventDecisionOffered:
			add(tagGate, "gate "+f.Step)
		case engine.EventStepCompleted:
			if f.Gate {
				add(tagGate, "gate "+f.Step)
			}
		case engine.EventRunCompleted:
			add(tagEnd, "end of the run")
		case engine.EventRunAborted:
			add(tagEnd, "the run was aborted")
		}
	}
	return names, tags
}

// Walked queues a checkpoint of a stateless walk if its context names a session that is not
// a run, and differs from the latest context of that session. vars is the context of the
// answer.
func (k *AutoSaver) Walked(who guideway.Principal, workflow string, completed []string, vars map[string]any) {
	session, _ := vars[keySession].(string)
	if k.o.Off || session == "" || isRun(session) {
		return
	}
	at := stepsWalk{Workflow: workflow, Completed: completed}
	doc, err := encodeWalk(vars, at)
	if err != nil || !k.isNewContext(who.User+" "+session, doc) {
		return
	}
	name := "start"
	if n := len(completed); n > 0 {
		name = "after " + completed[n-1]
	}
	request := checkpoint.SaveRequest{
		Session: session, Context: doc, Workflow: workflow, Agent: who.Client, Name: truncateText(name, 200),
		Kind: checkpoint.KindAuto,
	}
	k.enqueueJob(job{what: session + " " + name, saves: true, do: func(ctx context.Context) error {
		m, _, err := lastMarks(ctx, k.o.Checkpoints, who, session)
		if err != nil {
			return err
		}
		own, there := vars[keyCritical]
		if there {
			m = marksIn(own)
		}
		if m != nil {
			request.Tags = withTags(nil, m.allTags()...)
		}
		if m != nil && !there {
			marked := withoutKeys(vars)
			marked[keyCritical] = m
			if request.Context, err = encodeWalk(marked, at); err != nil {
				return err
			}
		}
		_, err = k.o.Checkpoints.Save(ctx, who, request)
		return err
	}})
}

// isNewContext reports whether a context differs from the latest one with the same key, and
// records it.
func (k *AutoSaver) isNewContext(key string, doc json.RawMessage) bool {
	sum := sha256.Sum256(doc)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.walks[key] == sum {
		return false
	}
	putCached(k.walks, key, sum)
	return true
}
