package requestlog

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// RecorderOptions adjust a Recorder; only Open is needed.
type RecorderOptions struct {
	// Open opens the log, when the first entry comes. It is tried again after a
	// failure.
	Open func(ctx context.Context) (*Log, error)
	// Redact makes what is kept of entries.
	Redact *Redactor
	// Retention and MaxBytes say what is kept; zero does not bound.
	Retention time.Duration
	MaxBytes  int64
	// Queue is how many entries wait at most: 4096.
	Queue int
	// Gather is how long the writer waits for more before it writes: 100 ms.
	Gather time.Duration
	// Logger gets what goes wrong; nil is silence.
	Logger *slog.Logger
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

const (
	// batchSize bounds a batch.
	batchSize = 512
	// pruneEvery is how often what is too old is taken out.
	pruneEvery = 10 * time.Minute
	// maxWaiting bounds what the arguments and results of waiting entries take.
	maxWaiting = 16 << 20
)

// Recorder writes entries behind the answers. Its methods never wait.
type Recorder struct {
	opts  RecorderOptions
	queue chan item
	begin sync.Once
	begun atomic.Bool
	// stop ends the writer, which then writes what is left; done is closed when
	// it has.
	stop, done chan struct{}
	end        sync.Once

	waitingBytes                      atomic.Int64
	written, dropped, unsaid, trimmed atomic.Int64
	lastErr                           atomic.Pointer[string]
	pruned                            time.Time
}

// item is an entry, or what has become known of one that was written.
type item struct {
	entry  *Entry
	id     string
	graphs []Graph
	size   int64
}

// NewRecorder returns a recorder. It opens nothing and starts nothing before the first
// entry.
func NewRecorder(opts RecorderOptions) *Recorder {
	if opts.Queue <= 0 {
		opts.Queue = 4096
	}
	if opts.Gather <= 0 {
		opts.Gather = 100 * time.Millisecond
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Redact == nil {
		opts.Redact = NewRedactor(0)
	}
	return &Recorder{opts: opts, stop: make(chan struct{}), done: make(chan struct{})}
}

// Bodies tells whether arguments and results are kept.
func (r *Recorder) Bodies() bool { return r.opts.Redact.bodies() }

// Add has an entry written. It is the recorder's from then on.
func (r *Recorder) Add(e *Entry) {
	i := item{entry: e, size: int64(len(e.Arguments) + len(e.Result))}
	if i.size > 0 && r.waitingBytes.Load()+i.size > maxWaiting {
		e.Arguments, e.Result, i.size = nil, nil, 0
		r.trimmed.Add(1)
	}
	r.put(i)
}

// Settle has what hooks did to an entry written again: hooks that run aside end
// later.
func (r *Recorder) Settle(id string, graphs []Graph) { r.put(item{id: id, graphs: graphs}) }

func (r *Recorder) put(i item) {
	r.begin.Do(func() {
		r.queue = make(chan item, r.opts.Queue)
		r.begun.Store(true)
		go r.write()
	})
	select {
	case <-r.stop:
		r.drop(i)
		return
	default:
	}
	r.waitingBytes.Add(i.size)
	select {
	case r.queue <- i:
	default:
		r.waitingBytes.Add(-i.size)
		r.drop(i)
	}
}

func (r *Recorder) drop(i item) {
	if i.entry != nil {
		r.dropped.Add(1)
		r.unsaid.Add(1)
	}
}

// Health says how the recorder does, in this process.
type Health struct {
	Written int64 `json:"written"`
	// Dropped entries had no room in the queue, or could not be written.
	Dropped int64 `json:"dropped"`
	Waiting int   `json:"waiting"`
	// Trimmed entries were written without what was sent: too much waited.
	Trimmed int64 `json:"trimmed,omitempty"`
	// Error is the last failure, until something is written again.
	Error string `json:"error,omitempty"`
}

// Health says how the recorder does.
func (r *Recorder) Health() Health {
	h := Health{Written: r.written.Load(), Dropped: r.dropped.Load(), Trimmed: r.trimmed.Load()}
	if r.begun.Load() {
		h.Waiting = len(r.queue)
	}
	if text := r.lastErr.Load(); text != nil {
		h.Error = *text
	}
	return h
}

// Close writes what waits, until ctx is done.
func (r *Recorder) Close(ctx context.Context) {
	r.end.Do(func() { close(r.stop) })
	r.begin.Do(func() { close(r.done) }) // there is no writer, and none begins
	select {
	case <-r.done:
	case <-ctx.Done():
	}
}

// write is the one writer.
func (r *Recorder) write() {
	defer close(r.done)
	for {
		var first item
		select {
		case first = <-r.queue:
		case <-r.stop:
			r.rest()
			return
		}
		timer := time.NewTimer(r.opts.Gather)
		select {
		case <-timer.C:
		case <-r.stop:
			timer.Stop()
		}
		r.flush(first)
	}
}

// rest writes what is left at the end.
func (r *Recorder) rest() {
	for {
		select {
		case i := <-r.queue:
			r.flush(i)
		default:
			return
		}
	}
}

// flush writes what waits, as one batch.
func (r *Recorder) flush(first item) {
	b := Batch{}
	var size int64
	for i, more := first, true; more; {
		if i.entry != nil {
			r.opts.Redact.entry(i.entry)
			b.Entries = append(b.Entries, i.entry)
		} else {
			if b.Graphs == nil {
				b.Graphs = map[string][]Graph{}
			}
			r.opts.Redact.graphs(i.graphs)
			b.Graphs[i.id] = i.graphs
		}
		size += i.size
		if more = len(b.Entries) < batchSize; more {
			select {
			case i = <-r.queue:
			default:
				more = false
			}
		}
	}
	r.waitingBytes.Add(-size)
	b.Dropped = r.unsaid.Swap(0)
	// The process may be ending: what was taken is written all the same.
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	log, err := r.opts.Open(ctx)
	if err == nil {
		if err = log.Write(ctx, b); err == nil {
			r.written.Add(int64(len(b.Entries)))
			r.lastErr.Store(nil)
			r.prune(ctx, log)
			return
		}
	}
	n := int64(len(b.Entries))
	r.dropped.Add(n)
	r.unsaid.Add(n + b.Dropped)
	text := err.Error()
	if old := r.lastErr.Swap(&text); old == nil || *old != text {
		r.opts.Logger.Warn("requests are not recorded", "entries", n, "error", err)
	}
}

// prune takes out what is too old or too much, now and then.
func (r *Recorder) prune(ctx context.Context, log *Log) {
	now := r.opts.Now()
	if now.Sub(r.pruned) < pruneEvery {
		return
	}
	r.pruned = now
	before := time.Time{}
	if r.opts.Retention > 0 {
		before = now.Add(-r.opts.Retention)
	}
	if before.IsZero() && r.opts.MaxBytes <= 0 {
		return
	}
	gone, err := log.Prune(ctx, before, r.opts.MaxBytes)
	if err != nil {
		r.opts.Logger.Warn("old entries of the record of requests could not be taken out", "error", err)
	} else if gone > 0 {
		r.opts.Logger.Debug("old entries of the record of requests are gone", "entries", gone)
	}
}
