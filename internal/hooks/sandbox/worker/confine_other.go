//go:build !linux

package worker

import scriptwire "github.com/guideway-dev/guideway/internal/hooks/sandbox/wire"

// confine has nothing to add here: the engine's own limits, the watchdog and
// the pool's kill hold on every system, those of the kernel on Linux alone.
func confine(scriptwire.Setup) (missing string, err error) { return "", nil }
