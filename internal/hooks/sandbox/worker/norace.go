//go:build !race

package worker

// raceEnabled: see race.go.
const raceEnabled = false
