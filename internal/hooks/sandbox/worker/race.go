//go:build race

package worker

// raceEnabled reports whether the race detector is on, which maps more memory than any
// limit allows.
const raceEnabled = true
