//go:build !linux

package main

import "time"

func memoryOf(int) (memory, error) { return memory{}, errNotMeasured }

func cpuTime(int) (time.Duration, error) { return 0, errNotMeasured }

func loadAverage() string { return "" }

func processor() string { return "" }
