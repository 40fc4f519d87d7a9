//go:build !linux

package worker

import "github.com/guideway-dev/guideway/internal/script/wire"

// confine has nothing to add here: the engine's own limits, the watchdog and
// the pool's kill hold on every system, those of the kernel on Linux alone.
func confine(wire.Setup) (missing string, err error) { return "", nil }
