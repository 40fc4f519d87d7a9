package config

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	day  = 24 * time.Hour
	week = 7 * day
)

// durationPart matches a number with a unit at the start of a text.
var durationPart = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^([0-9]*\.?[0-9]*)(ns|us|µs|μs|ms|s|m|h|d|w)`) })

// ParseDuration parses a duration like time.ParseDuration, with d for days of 24 hours and
// w for weeks. It refuses negative durations.
func ParseDuration(text string) (time.Duration, error) {
	rest := strings.TrimPrefix(text, "+")
	if rest == "0" {
		return 0, nil
	}
	total := time.Duration(0)
	for first := true; first || rest != ""; first = false {
		part := durationPart().FindStringSubmatch(rest)
		if part == nil {
			return 0, fmt.Errorf(`%q is not a duration such as "30s" or "7d"`, text)
		}
		rest = rest[len(part[0]):]
		number, unit := part[1], part[2]
		scale := time.Duration(1)
		switch unit {
		case "d":
			scale, unit = day/time.Hour, "h"
		case "w":
			scale, unit = week/time.Hour, "h"
		}
		d, err := time.ParseDuration(number + unit)
		if err != nil {
			return 0, fmt.Errorf(`%q is not a duration such as "30s" or "7d"`, text)
		}
		if d > (math.MaxInt64-total)/scale {
			return 0, fmt.Errorf("the duration %q is longer than 292 years", text)
		}
		total += d * scale
	}
	return total, nil
}

// DurationText formats a duration for ParseDuration: whole days as days, other durations
// like time.Duration.
func DurationText(d time.Duration) string {
	if d >= day && d%day == 0 {
		return fmt.Sprintf("%dd", d/day)
	}
	return d.String()
}

// sizeUnit is a unit of sizes.
type sizeUnit struct {
	name  string
	bytes int64
}

// sizeUnits are the units of sizes, the largest first.
func sizeUnits() []sizeUnit {
	return []sizeUnit{
		{"TiB", 1 << 40},
		{"TB", 1e12},
		{"GiB", 1 << 30},
		{"GB", 1e9},
		{"MiB", 1 << 20},
		{"MB", 1e6},
		{"KiB", 1 << 10},
		{"KB", 1e3},
		{"B", 1},
	}
}

// ParseSize parses a number of bytes: "10MB", "1.5 GiB", "4096". Units with an i are powers
// of 1024, the others of 1000. Case does not matter.
func ParseSize(text string) (int64, error) {
	number, scale := strings.TrimSpace(text), int64(1)
	for _, unit := range sizeUnits() {
		if head := len(number) - len(unit.name); head > 0 && strings.EqualFold(number[head:], unit.name) {
			number, scale = strings.TrimSpace(number[:head]), unit.bytes
			break
		}
	}
	if number == "" || strings.Trim(number, "0123456789.") != "" {
		return 0, fmt.Errorf(`%q is not a size such as "10MB"`, text)
	}
	n, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0, fmt.Errorf(`%q is not a size such as "10MB"`, text)
	}
	if n*float64(scale) >= math.MaxInt64 {
		return 0, fmt.Errorf("the size %q must be less than 8 EiB", text)
	}
	return int64(n * float64(scale)), nil
}

// SizeText formats a size for ParseSize, in the largest unit that makes it a whole number.
func SizeText(n int64) string {
	for _, unit := range sizeUnits() {
		if n >= unit.bytes && n%unit.bytes == 0 {
			return strconv.FormatInt(n/unit.bytes, 10) + unit.name
		}
	}
	return strconv.FormatInt(n, 10) + "B"
}
