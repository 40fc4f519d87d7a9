package requestlog

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// RecorderOptions configure a Recorder; only Open is required.
type RecorderOptions struct {
	// Open returns the log. It is called for every batch, for the first time after the
	// first entry was added.
	Open func(ctx context.Context) (*Log, error)
	// Redact redacts entries before they are written.
	Redact *Redactor
	// Retention and MaxBytes limit the log; zero means unlimited.
	Retention time.Duration
	MaxBytes  int64
	// Queue is the maximum number of waiting entries: 4096 by default.
	Queue int
	// Gather is the time that the writer waits for more entries before it writes: 100 ms by
	// default.
	Gather time.Duration
	// Logger logs errors; may be nil.
	Logger *slog.Logger
	// Now is the clock; time.Now if nil.
	Now func() time.Time
}

const (
	// batchSize is the maximum number of entries in a batch.
	batchSize = 512
	// pruneEvery is the interval between removals of old entries.
	pruneEvery = 10 * time.Minute
	// maxWaiting limits the arguments and results of waiting entries in bytes.
	maxWaiting = 16 << 20
)

// Recorder writes entries after the answers were sent. Its methods other than Close never
// block.
type Recorder struct {
	opts  RecorderOptions
	queue chan item
	begin sync.Once
	begun atomic.Bool
	// stop ends the writer, which then writes the remaining entries; done is closed after
	// that.
	stop, done chan struct{}
	end        sync.Once

	waitingBytes                      atomic.Int64
	written, dropped, unsaid, trimmed atomic.Int64
	lastErr                           atomic.Pointer[string]
	pruned                            time.Time
}

// item is an entry, or an update of the graphs of an entry that was added before.
type item struct {
	entry  *Entry
	id     string
	graphs []Graph
	size   int64
}

// NewRecorder returns a recorder. It opens and starts nothing before the first entry.
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
		opts.Redact = &Redactor{}
	}
	return &Recorder{opts: opts, stop: make(chan struct{}), done: make(chan struct{})}
}

// Bodies reports whether arguments and results are recorded.
func (r *Recorder) Bodies() bool { return r.opts.Redact.keepsBodies() }

// Add queues an entry. The recorder owns it from then on.
func (r *Recorder) Add(e *Entry) {
	i := item{entry: e, size: int64(len(e.Arguments) + len(e.Result))}
	if i.size > 0 && r.waitingBytes.Load()+i.size > maxWaiting {
		e.Arguments, e.Result, i.size = nil, nil, 0
		r.trimmed.Add(1)
	}
	r.putItem(i)
}

// Settle updates the graphs of an entry: fire-and-forget hooks end after the entry was
// added.
func (r *Recorder) Settle(id string, graphs []Graph) { r.putItem(item{id: id, graphs: graphs}) }

func (r *Recorder) putItem(i item) {
	r.begin.Do(func() {
		r.queue = make(chan item, r.opts.Queue)
		r.begun.Store(true)
		go r.runWriter()
	})
	select {
	case <-r.stop:
		r.dropItem(i)
		return
	default:
	}
	r.waitingBytes.Add(i.size)
	select {
	case r.queue <- i:
	default:
		r.waitingBytes.Add(-i.size)
		r.dropItem(i)
	}
}

func (r *Recorder) dropItem(i item) {
	if i.entry != nil {
		r.dropped.Add(1)
		r.unsaid.Add(1)
	}
}

// Health is the state of the recorder in this process.
type Health struct {
	Written int64 `json:"written"`
	// Dropped counts entries without room in the queue and entries that could not be
	// written.
	Dropped int64 `json:"dropped"`
	Waiting int   `json:"waiting"`
	// Trimmed counts entries that were written without bodies because too many bytes
	// waited.
	Trimmed int64 `json:"trimmed,omitempty"`
	// Error is the last error, until a write succeeds.
	Error string `json:"error,omitempty"`
}

// Health returns the state of the recorder.
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

// Close writes the waiting entries, until ctx is done.
func (r *Recorder) Close(ctx context.Context) {
	r.end.Do(func() { close(r.stop) })
	r.begin.Do(func() { close(r.done) }) // no writer is running, and none can start later
	select {
	case <-r.done:
	case <-ctx.Done():
	}
}

// runWriter is the loop of the only writer.
func (r *Recorder) runWriter() {
	defer close(r.done)
	for {
		var first item
		select {
		case first = <-r.queue:
		case <-r.stop:
			r.writeRest()
			return
		}
		timer := time.NewTimer(r.opts.Gather)
		select {
		case <-timer.C:
		case <-r.stop:
			timer.Stop()
		}
		r.writeBatch(first)
	}
}

// writeRest writes the remaining entries at the end.
func (r *Recorder) writeRest() {
	for {
		select {
		case i := <-r.queue:
			r.writeBatch(i)
		default:
			return
		}
	}
}

// writeBatch writes the waiting entries as one batch.
func (r *Recorder) writeBatch(first item) {
	b := Batch{}
	var size int64
	for i, more := first, true; more; {
		if i.entry != nil {
			r.opts.Redact.redactEntry(i.entry)
			b.Entries = append(b.Entries, i.entry)
		} else {
			if b.Graphs == nil {
				b.Graphs = map[string][]Graph{}
			}
			r.opts.Redact.redactGraphs(i.graphs)
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
	// The process may be exiting: write the accepted entries regardless.
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	log, err := r.opts.Open(ctx)
	if err == nil {
		if err = log.Write(ctx, b); err == nil {
			r.written.Add(int64(len(b.Entries)))
			r.lastErr.Store(nil)
			r.pruneOld(ctx, log)
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

// pruneOld removes old and excess entries from time to time.
func (r *Recorder) pruneOld(ctx context.Context, log *Log) {
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
		r.opts.Logger.Warn("old entries of the request log could not be removed", "error", err)
	} else if gone > 0 {
		r.opts.Logger.Debug("old entries of the request log were removed", "entries", gone)
	}
}
