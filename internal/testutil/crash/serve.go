package crash

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

// Handler executes the orders of a worker.
type Handler[O any, R Reply] interface {
	// Handle executes an order. It is called concurrently.
	Handle(ctx context.Context, o O) R
	Close() error
}

// OpenFunc opens the store of a worker. It returns the first reply, which reports whether
// the store was opened, and the handler, which is nil after an error.
type OpenFunc[P Place, O any, R Reply] func(ctx context.Context, p P) (Handler[O, R], R)

// Main is the TestMain of a package with workers: in a worker process it runs the worker,
// otherwise the tests.
func Main[P Place, O any, R Reply](m *testing.M, open OpenFunc[P, O, R]) {
	text := os.Getenv(placeVariable)
	if text == "" {
		goleak.VerifyTestMain(m)
		return
	}
	if err := runWorker(context.Background(), text, os.Stdin, os.Stdout, open); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// runWorker executes orders until the input ends. Each reply is one write.
func runWorker[P Place, O any, R Reply](ctx context.Context, text string, in io.Reader, out io.Writer, open OpenFunc[P, O, R]) error {
	var p P
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return fmt.Errorf("read the place: %w", err)
	}
	if err := p.Disk().mountDir(); err != nil {
		return err
	}
	var writing sync.Mutex
	say := func(number int, r R) error {
		text, err := json.Marshal(message[R]{Number: number, Body: r})
		if err != nil {
			return fmt.Errorf("write a reply: %w", err)
		}
		writing.Lock()
		defer writing.Unlock()
		_, err = out.Write(append(text, '\n'))
		return err
	}
	desk, first := open(ctx, p)
	if err := say(readyNumber, first); err != nil || desk == nil {
		return err
	}
	var orders sync.WaitGroup
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var l message[O]
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			return fmt.Errorf("read an order: %w", err)
		}
		orders.Go(func() { _ = say(l.Number, desk.Handle(ctx, l.Body)) }) // if the write fails, the next order fails too
	}
	orders.Wait()
	return desk.Close()
}
