//go:build !linux

package measure

import "time"

// MemoryOf returns ErrNotMeasured.
func MemoryOf(int) (Memory, error) { return Memory{}, ErrNotMeasured }

// CPUTime returns ErrNotMeasured.
func CPUTime(int) (time.Duration, error) { return 0, ErrNotMeasured }

// Children returns no processes.
func Children(int) []int { return nil }

func commandLine(int) []byte { return nil }

func loadAverage() string { return "" }

func processorModel() string { return "" }
