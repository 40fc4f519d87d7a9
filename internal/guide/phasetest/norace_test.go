//go:build !race

package phasetest

// race is 0 without the race detector.
const race = 0
