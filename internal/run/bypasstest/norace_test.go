//go:build !race

package bypasstest

// race is 1 with the race detector.
const race = 0
