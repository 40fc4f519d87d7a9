//go:build !race

package worker

// raceEnabled is documented in race.go.
const raceEnabled = false
