//go:build race

package phasetest

// race is 1 with the race detector.
const race = 1
