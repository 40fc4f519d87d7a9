//go:build race

package cheattest

// race is 1 with the race detector.
const race = 1
