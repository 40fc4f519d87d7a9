// Package pattern runs the regular expressions of definitions: JavaScript's
// syntax, with a limit on the time of every match.
//
// It is the only door to regexp2 in the process. The clock of that library is
// read by every match and set through a package variable, so it must be set
// before the first match and never again; Compile does that, and no match
// happens without a Compile before it. The clock is a goroutine,
// regexp2.runClock, that ends about a second after the last match: tests that
// look for leaked goroutines ignore it by that name.
package pattern

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/dlclark/regexp2"
)

// Limit is the longest that one match may take. It is of the wall, and a busy
// machine can take a thread away for as long in the middle of a match that needs
// a microsecond; so a match is tried so many times before it is given up.
const (
	Limit    = 250 * time.Millisecond
	maxTries = 3
)

// checkPeriod is how often the clock ticks that ends a match; the library's own
// choice of 100 ms would let a match run for nearly twice its limit.
const checkPeriod = 5 * time.Millisecond

// ErrTooLong reports whether a match was given up at the limit: nobody knows whether
// the pattern matches.
var ErrTooLong = errors.New("the pattern took too long")

// clockOnce sets the period of the library's clock before the first match.
var clockOnce sync.Once

// Pattern is a compiled pattern. It is safe for concurrent use.
type Pattern struct {
	re     *regexp2.Regexp
	sticky bool
}

// Compile compiles a pattern with JavaScript's flags: i, m, s and u as there; y
// matches at the start alone; g and d change nothing for a single test. An
// unknown or repeated flag is an error, as in JavaScript. Inline flags such as
// (?i), which JavaScript refuses, are accepted: a good half of the patterns in
// use carry them.
func Compile(source, flags string) (*Pattern, error) {
	clockOnce.Do(func() { regexp2.SetTimeoutCheckPeriod(checkPeriod) })
	options, sticky, err := parseFlags(flags)
	if err != nil {
		return nil, err
	}
	re, err := regexp2.Compile(source, options)
	if err != nil {
		// The library repeats the whole pattern; the reason comes before it.
		reason := strings.TrimPrefix(err.Error(), "error parsing regexp: ")
		if at := strings.Index(reason, " in `"); at > 0 {
			reason = reason[:at]
		}
		return nil, errors.New(reason)
	}
	re.MatchTimeout = Limit
	return &Pattern{re: re, sticky: sticky}, nil
}

// CheckFlags says what is wrong with flags, without compiling anything.
func CheckFlags(flags string) error {
	_, _, err := parseFlags(flags)
	return err
}

// Match reports whether the pattern matches somewhere in s. The error is
// ErrTooLong.
func (p *Pattern) Match(s string) (bool, error) {
	for range maxTries {
		if matched, err := p.matchOnce(s); err == nil {
			return matched, nil
		}
	}
	return false, ErrTooLong
}

func (p *Pattern) matchOnce(s string) (bool, error) {
	if !p.sticky {
		return p.re.MatchString(s)
	}
	// The leftmost match is the one at the start, if there is one.
	match, err := p.re.FindStringMatch(s)
	return match != nil && match.Index == 0, err
}

// parseFlags turns JavaScript's flags into the library's options.
func parseFlags(flags string) (regexp2.RegexOptions, bool, error) {
	options := regexp2.RegexOptions(regexp2.ECMAScript)
	sticky := false
	for i, flag := range flags {
		if strings.ContainsRune(flags[:i], flag) {
			return 0, false, fmt.Errorf("flag %q is given twice", flag)
		}
		switch flag {
		case 'i':
			options |= regexp2.IgnoreCase
		case 'm':
			options |= regexp2.Multiline
		case 's':
			options |= regexp2.Singleline
		case 'u':
			options |= regexp2.Unicode
		case 'y':
			sticky = true
		case 'g', 'd':
		default:
			return 0, false, fmt.Errorf("unknown flag %q", flag)
		}
	}
	return options, sticky, nil
}
