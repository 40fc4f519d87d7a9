//go:build !linux

package worker

import scriptwire "github.com/guideway-dev/guideway/internal/hooks/sandbox/protocol"

// confineProcess does nothing: the engine's own limits, the watchdog and the pool's kill
// apply on every system, the kernel's limits only on Linux.
func confineProcess(scriptwire.Setup) (missing string, err error) { return "", nil }
