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

// Desk is what a worker works at.
type Desk[O any, R Reply] interface {
	// CarryOut carries out an order. Orders come side by side.
	CarryOut(ctx context.Context, o O) R
	Close() error
}

// Opening opens a place. It gives the first reply, which says whether that was
// possible, and the desk, which is nil if it was not.
type Opening[P Place, O any, R Reply] func(ctx context.Context, p P) (Desk[O, R], R)

// Main is the TestMain of a package with workers: it makes the process a worker if
// it was hired as one, and runs the tests otherwise.
func Main[P Place, O any, R Reply](m *testing.M, open Opening[P, O, R]) {
	text := os.Getenv(variable)
	if text == "" {
		goleak.VerifyTestMain(m)
		return
	}
	if err := work(context.Background(), text, os.Stdin, os.Stdout, open); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// work carries out orders until there are no more. Each reply is one write.
func work[P Place, O any, R Reply](ctx context.Context, text string, in io.Reader, out io.Writer, open Opening[P, O, R]) error {
	var p P
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return fmt.Errorf("read the place: %w", err)
	}
	if err := p.Disk().mount(); err != nil {
		return err
	}
	var writing sync.Mutex
	say := func(number int, r R) error {
		text, err := json.Marshal(line[R]{Number: number, Body: r})
		if err != nil {
			return fmt.Errorf("write a reply: %w", err)
		}
		writing.Lock()
		defer writing.Unlock()
		_, err = out.Write(append(text, '\n'))
		return err
	}
	desk, first := open(ctx, p)
	if err := say(ready, first); err != nil || desk == nil {
		return err
	}
	var orders sync.WaitGroup
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var l line[O]
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			return fmt.Errorf("read an order: %w", err)
		}
		orders.Go(func() { _ = say(l.Number, desk.CarryOut(ctx, l.Body)) }) // nobody reads it: the next order tells
	}
	orders.Wait()
	return desk.Close()
}
