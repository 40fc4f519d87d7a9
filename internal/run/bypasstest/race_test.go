//go:build race

package bypasstest

// race is 1 with the race detector, otherwise 0.
const race = 1
