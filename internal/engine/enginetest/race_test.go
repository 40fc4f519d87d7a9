//go:build race

package enginetest

// race is 1 with the race detector.
const race = 1
