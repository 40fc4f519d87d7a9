//go:build race

package worker

// raceEnabled: the race detector maps more memory than a limit could allow.
const raceEnabled = true
