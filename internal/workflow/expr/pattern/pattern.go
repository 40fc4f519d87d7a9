// Package pattern runs the regular expressions of definitions: they have JavaScript's
// syntax, and every match has a time limit.
//
// It is the only user of regexp2 in the process. Every match reads the clock of that
// library. The clock's period is a package variable that must be set before the first match
// and never again; Compile sets it. The clock is a goroutine, regexp2.runClock, that ends
// about a second after the last match: tests for leaked goroutines ignore it by that name.
package pattern

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/dlclark/regexp2"
)

// Limit is the maximum elapsed time of one match. On a busy machine, a match that needs a
// microsecond can exceed the limit, because its thread is suspended; so a match that
// exceeds the limit is tried up to maxTries times.
const (
	Limit    = 250 * time.Millisecond
	maxTries = 3
)

// checkPeriod is the period of the clock that ends a match; with the library's default of
// 100 ms a match could take nearly twice its limit.
const checkPeriod = 5 * time.Millisecond

// ErrTooLong is returned if a match reached its limit. Whether the pattern matches is
// unknown.
var ErrTooLong = fmt.Errorf("the pattern took longer than %v", Limit)

// clockOnce sets the period of the library's clock before the first match.
var clockOnce sync.Once

// Pattern is a compiled pattern. It is safe for concurrent use.
type Pattern struct {
	re     *regexp2.Regexp
	sticky bool
}

// Compile compiles a pattern with JavaScript's flags: i, m, s and u mean the same; y
// matches only at the start; g and d have no effect on a single test. An unknown or
// repeated flag is an error, as in JavaScript. Inline flags such as (?i), which JavaScript
// rejects, are accepted, because half of the patterns in use contain them.
func Compile(source, flags string) (*Pattern, error) {
	clockOnce.Do(func() { regexp2.SetTimeoutCheckPeriod(checkPeriod) })
	options, sticky, err := parseFlags(flags)
	if err != nil {
		return nil, err
	}
	re, err := regexp2.Compile(source, options)
	if err != nil {
		// The library's message contains the reason and then the whole pattern; keep the
		// reason.
		reason := strings.TrimPrefix(err.Error(), "error parsing regexp: ")
		if at := strings.Index(reason, " in `"); at > 0 {
			reason = reason[:at]
		}
		return nil, errors.New(reason)
	}
	re.MatchTimeout = Limit
	return &Pattern{re: re, sticky: sticky}, nil
}

// CheckFlags returns the error in flags, if any, without compiling a pattern.
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
	// If the pattern matches at the start, that is the leftmost match.
	match, err := p.re.FindStringMatch(s)
	return match != nil && match.Index == 0, err
}

// parseFlags converts JavaScript's flags to the library's options.
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
