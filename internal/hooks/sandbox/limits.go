package sandbox

import (
	"cmp"
	"time"

	scriptwire "github.com/guideway-dev/guideway/internal/hooks/sandbox/protocol"
)

// DefaultLimits returns the default limits of a call.
func DefaultLimits() Limits {
	return Limits{
		Wall: 5 * time.Second, CPU: time.Second,
		Memory: 32 << 20, Stack: 2000, Output: 4 << 20, Console: 64 << 10,
	}
}

// MostLimits returns the default maximum limits of a call.
func MostLimits() Limits {
	return Limits{
		Wall: time.Minute, CPU: 30 * time.Second,
		Memory: 128 << 20, Stack: 4000, Output: 32 << 20, Console: 1 << 20,
	}
}

func orElse(l, usual Limits) Limits {
	return Limits{
		Wall: cmp.Or(l.Wall, usual.Wall), CPU: cmp.Or(l.CPU, usual.CPU), Memory: cmp.Or(l.Memory, usual.Memory),
		Stack: cmp.Or(l.Stack, usual.Stack), Output: cmp.Or(l.Output, usual.Output), Console: cmp.Or(l.Console, usual.Console),
	}
}

// Limits limit one call; its fields describe the units. A zero field uses the pool's
// default.
type Limits = scriptwire.Limits
