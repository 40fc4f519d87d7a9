package contexts

import (
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

// KeeperOptions say what a Keeper saves to. Checkpoints is needed.
type KeeperOptions struct {
	Checkpoints Checkpoints
	// Off saves nothing by itself.
	Off bool
	// Queue bounds what waits to be saved; 0 is 64.
	Queue int
	// Now is the clock, time.Now if nil.
	Now func() time.Time
	// Logger gets what goes wrong; nil is silence.
	Logger *slog.Logger
}

// Keeper saves checkpoints without anybody's asking, beside the answers: of a run
// at the end of each phase and loop, at each gate and at its end, and of a
// stateless walk that names a session. What goes wrong is told by Health and
// fails no answer. It is the run service's observer.
type Keeper struct {
	o     KeeperOptions
	queue chan job
	late  late
	done  sync.WaitGroup

	mu     sync.Mutex
	closed bool
	health Health
	// sizes are the contexts of runs that have grown large, in tokens.
	sizes     map[string]int
	threshold int
	prepare   func(ctx context.Context, c run.Caller, id string) error
	// preparing are the runs whose brief waits to be made.
	preparing map[string]bool
	// written gives the summaries of a run that its checkpoints carry.
	written func(id string) map[string]string
	// slow is done beside what is queued, by whoever waits for others.
	slow   chan func(context.Context)
	giveUp context.CancelFunc
	// walks are the last contexts that were saved of walks, by user and session.
	walks map[string][sha256.Size]byte
}

var _ run.Observer = (*Keeper)(nil)

// Health tells of what a Keeper has done.
type Health struct {
	// Off says that nothing is saved by itself.
	Off bool `json:"off,omitempty"`
	// Saved and Failed count checkpoints, Dropped those that found the queue full,
	// Waiting those that are under way.
	Saved   int64 `json:"saved"`
	Failed  int64 `json:"failed,omitempty"`
	Dropped int64 `json:"dropped,omitempty"`
	Waiting int   `json:"waiting,omitempty"`
	// Error is the last failure, ErrorAt its time; both are empty once a later
	// checkpoint was saved.
	Error   string    `json:"error,omitempty"`
	ErrorAt time.Time `json:"errorAt,omitzero"`
}

// problem says what an agent should tell the person, or "".
func (h Health) problem() string {
	if h.Error == "" {
		return ""
	}
	return "the last automatic checkpoint could not be saved: " + h.Error
}

// job is something to do beside the answers.
type job struct {
	what string
	do   func(context.Context) error
	// saves says that a checkpoint comes of it.
	saves bool
}

// NewKeeper makes a keeper. It must be closed.
func NewKeeper(o KeeperOptions) (*Keeper, error) {
	if o.Checkpoints == nil {
		return nil, guideway.Errorf(guideway.CodeInternal, "a keeper needs what keeps checkpoints")
	}
	if o.Queue <= 0 {
		o.Queue = 64
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	k := &Keeper{
		o: o, queue: make(chan job, o.Queue), health: Health{Off: o.Off},
		sizes: map[string]int{}, preparing: map[string]bool{}, walks: map[string][sha256.Size]byte{},
	}
	k.late.runs = make(chan string, maxLate)
	k.slow = make(chan func(context.Context), maxSlow)
	ctx, giveUp := context.WithCancel(context.Background())
	k.giveUp = giveUp
	k.done.Go(k.work)
	k.done.Go(func() {
		for do := range k.slow {
			do(ctx)
		}
	})
	return k, nil
}

// Close saves what waits and ends. What comes later is not saved.
func (k *Keeper) Close() error {
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

// Health tells what was saved and what was not.
func (k *Keeper) Health() Health {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.health
}

// whenLarge has prepare called beside the answers for a run whose context has so
// many tokens; 0 never.
func (k *Keeper) whenLarge(threshold int, prepare func(context.Context, run.Caller, string) error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.threshold, k.prepare = threshold, prepare
}

// large gives the tokens of a run's context if it is large, or 0.
func (k *Keeper) large(id string) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.sizes[id]
}

// maxSlow bounds what waits for others.
const maxSlow = 16

// slowly has something done that may take long and is given up at the end.
func (k *Keeper) slowly(do func(context.Context)) (taken bool) {
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

// carry has the checkpoints of runs carry what was written of them.
func (k *Keeper) carry(written func(id string) map[string]string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.written = written
}

// enqueue has something done beside the answers, if there is room.
func (k *Keeper) enqueue(j job) (taken bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return false
	}
	select {
	case k.queue <- j:
		k.health.Waiting++
		return true
	default:
		if j.saves {
			k.health.Dropped++
			k.o.Logger.Warn("an automatic checkpoint was left out: too many wait", "checkpoint", j.what)
		}
		return false
	}
}

// jobTime bounds one job, so that a store that hangs does not hold up the end.
const jobTime = 30 * time.Second

// work does what is queued, and between that looks after runs that came into view.
func (k *Keeper) work() {
	for {
		select {
		case j, open := <-k.queue:
			if !open {
				k.lookAfterAll()
				return
			}
			k.carryOut(j)
			continue
		default:
		}
		select {
		case j, open := <-k.queue:
			if !open {
				k.lookAfterAll()
				return
			}
			k.carryOut(j)
		case id := <-k.late.runs:
			k.lookAfter(id)
		}
	}
}

func (k *Keeper) carryOut(j job) {
	ctx, cancel := context.WithTimeout(context.Background(), jobTime)
	defer cancel()
	err := j.do(ctx)
	k.mu.Lock()
	k.health.Waiting--
	k.mu.Unlock()
	if j.saves {
		k.count(err)
	}
	if err != nil && !isMoot(err) {
		k.o.Logger.Warn("something beside an answer failed", "what", j.what, "error", err)
	}
}

// isMoot says that a checkpoint is not wanted any more: it was deleted, or a later
// one of the run is there.
func isMoot(err error) bool { return guideway.ErrorCode(err) == guideway.CodeRefused }

// count counts a checkpoint that was saved, or was not.
func (k *Keeper) count(err error) {
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
func (k *Keeper) Committed(_ context.Context, c run.Committed) {
	k.watch(c)
	names, tags := occasions(c.Facts)
	if k.o.Off || len(names) == 0 {
		return
	}
	name := first(strings.Join(names, "; "), 200)
	k.enqueue(job{what: c.Record.ID + " " + name, saves: true, do: func(ctx context.Context) error {
		k.lookAfter(c.Record.ID) // what is missing comes before what is new
		return k.save(ctx, c, name, tags)
	}})
	if !slices.Equal(tags, []string{tagGate}) {
		k.summarise(c.Record)
	}
}

// summarise has the summary of a run brought up to date where a part of it has ended
// and a model writes it.
func (k *Keeper) summarise(rec run.Record) {
	k.mu.Lock()
	written, prepare := k.written, k.prepare
	k.mu.Unlock()
	if written == nil || prepare == nil {
		return
	}
	caller := run.Caller{Principal: guideway.Principal{User: rec.User}, Via: run.ViaServer}
	k.enqueue(job{what: "the summary of " + rec.ID, do: func(ctx context.Context) error { return prepare(ctx, caller, rec.ID) }})
}

// watch has the brief of a run made where its context has grown large.
func (k *Keeper) watch(c run.Committed) {
	if len(c.Facts) == 0 {
		return
	}
	k.mu.Lock()
	threshold, prepare := k.threshold, k.prepare
	k.mu.Unlock()
	if threshold == 0 || prepare == nil {
		return
	}
	tokens := estimate(c.State.Vars)
	k.mu.Lock()
	if tokens < threshold {
		delete(k.sizes, c.Record.ID)
		k.mu.Unlock()
		return
	}
	put(k.sizes, c.Record.ID, tokens)
	waits := k.preparing[c.Record.ID]
	k.preparing[c.Record.ID] = true
	k.mu.Unlock()
	if waits {
		return
	}
	caller := run.Caller{Principal: guideway.Principal{User: c.Record.User}, Via: run.ViaServer}
	taken := k.enqueue(job{what: "the brief of " + c.Record.ID, do: func(ctx context.Context) error {
		k.prepared(c.Record.ID)
		return prepare(ctx, caller, c.Record.ID)
	}})
	if !taken {
		k.prepared(c.Record.ID)
	}
}

// prepared lets the brief of a run be made again.
func (k *Keeper) prepared(id string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.preparing, id)
}

func (k *Keeper) save(ctx context.Context, c run.Committed, name string, tags []string) error {
	pos := c.Flow.PositionOf(c.State)
	at := placeOf(c.Record, c.Flow.Status(c.State), pos)
	k.mu.Lock()
	written := k.written
	k.mu.Unlock()
	if written != nil {
		at.Written = written(c.Record.ID)
	}
	doc, err := prepare(c.State.Vars, nil, at)
	if err != nil {
		return err
	}
	_, err = k.o.Checkpoints.Save(ctx, guideway.Principal{User: c.Record.User, Client: c.By.Client}, checkpoint.SaveRequest{
		Session: c.Record.ID, Run: c.Record.ID, RunSeq: c.Record.Seq, Context: doc, Workflow: c.Record.Workflow,
		Project: c.Record.Project.ID, Agent: c.By.Client, Name: name, Tags: withTags(tags, tagsOf(c.Marks)...),
		// Another process may have seen that it is missing.
		Kind: checkpoint.KindAuto, Once: true,
		// Counting would load the vocabulary in every process that has a run.
		Tokens: int64(estimate(c.State.Vars)),
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

// occasions says for what events of a command a checkpoint is saved.
func occasions(facts []engine.Event) (names, tags []string) {
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

// Walked saves the context of a stateless walk, if that names a session of its
// own and is not the one that was saved last. It is the context that the answer
// gave.
func (k *Keeper) Walked(who guideway.Principal, workflow string, completed []string, vars map[string]any) {
	session, _ := vars[keySession].(string)
	if k.o.Off || session == "" || isRun(session) {
		return
	}
	at := walk{Workflow: workflow, Completed: completed}
	doc, err := prepareWalk(vars, at)
	if err != nil || !k.isNew(who.User+" "+session, doc) {
		return
	}
	name := "start"
	if n := len(completed); n > 0 {
		name = "after " + completed[n-1]
	}
	request := checkpoint.SaveRequest{
		Session: session, Context: doc, Workflow: workflow, Agent: who.Client, Name: first(name, 200),
		Kind: checkpoint.KindAuto, Tokens: int64(estimate(vars)),
	}
	k.enqueue(job{what: session + " " + name, saves: true, do: func(ctx context.Context) error {
		m, _, err := lastMarks(ctx, k.o.Checkpoints, who, session)
		if err != nil {
			return err
		}
		own, there := vars[keyCritical]
		if there {
			m = marksIn(own)
		}
		if m != nil {
			request.Tags = withTags(nil, m.tags()...)
		}
		if m != nil && !there {
			marked := without(vars)
			marked[keyCritical] = m
			if request.Context, err = prepareWalk(marked, at); err != nil {
				return err
			}
		}
		_, err = k.o.Checkpoints.Save(ctx, who, request)
		return err
	}})
}

// isNew says whether a walk's context is not the last one that was saved.
func (k *Keeper) isNew(key string, doc json.RawMessage) bool {
	sum := sha256.Sum256(doc)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.walks[key] == sum {
		return false
	}
	put(k.walks, key, sum)
	return true
}
