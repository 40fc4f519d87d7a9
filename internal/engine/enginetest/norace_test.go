//go:build !race

package enginetest

// race is 0 without the race detector.
const race = 0
