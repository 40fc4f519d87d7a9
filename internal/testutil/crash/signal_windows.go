package crash

import "os"

// dumpSignal ends a process. It prints no goroutines on this platform.
var dumpSignal = os.Kill //nolint:gochecknoglobals // never written
