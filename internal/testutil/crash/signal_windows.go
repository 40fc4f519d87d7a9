package crash

import "os"

// dumpSignal ends a process. The process prints no goroutine stacks on this platform.
var dumpSignal = os.Kill //nolint:gochecknoglobals // never written
