package run

import (
	"context"

	"github.com/guideway-dev/guideway/internal/guide"
)

// Observer is told of what runs do, once it is in the journal. It decides
// nothing.
type Observer interface {
	// Committed is called before the caller has its answer, so it must not wait.
	// What it is given is nobody's to change.
	Committed(ctx context.Context, c Committed)
}

// Committed is what a command has added to a run.
type Committed struct {
	// Record is the run as it is now.
	Record Record
	// By says whose doing it is.
	By By
	// Facts are the engine's events that the command has brought. A fork, an
	// import and a refused attempt bring none.
	Facts []guide.Event
	// State is the run behind them, Flow its definition.
	State guide.State
	Flow  guide.Flow
	// Marks are the variables that were called critical.
	Marks []Mark
}
