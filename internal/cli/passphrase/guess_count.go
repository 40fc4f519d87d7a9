package passphrase

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/atomicfile"
)

// guessCount is the number of wrong passphrases since the last correct one, and the time of
// the last wrong one.
type guessCount struct {
	Wrong int       `json:"wrong"`
	Last  time.Time `json:"last"`
}

const (
	// freeGuesses is the number of guesses without a wait, for typing errors.
	freeGuesses = 3
	firstWait   = 5 * time.Second
	longestWait = 5 * time.Minute
)

// remainingWait returns the time until the next guess is allowed.
func (g guessCount) remainingWait(now time.Time) time.Duration {
	if g.Wrong < freeGuesses {
		return 0
	}
	wait := longestWait
	if doublings := g.Wrong - freeGuesses; doublings < 6 {
		wait = firstWait << doublings
	}
	since := now.Sub(g.Last)
	if since < 0 { // the clock was set back: restart the wait
		since = 0
	}
	return max(0, wait-since)
}

func (f File) guessPath() string { return f.Path + ".guesses" }

// readGuesses reads the count. An unreadable count is an error, otherwise it would allow
// unlimited guesses.
func (f File) readGuesses() (guessCount, error) {
	var g guessCount
	data, err := readPrivate(f.guessPath(), "count of wrong passphrases")
	if errors.Is(err, fs.ErrNotExist) {
		return g, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &g)
	}
	if err == nil && g.Wrong < 0 {
		err = fmt.Errorf("%d is negative", g.Wrong)
	}
	if err != nil {
		return g, guideway.Errorf(guideway.CodeUnavailable, "the number of wrong passphrases in %s cannot be read: %w", f.guessPath(), err).
			WithFix("remove %s, if you are sure that there was no attempt to guess the passphrase", f.guessPath())
	}
	return g, nil
}

// writeJSON writes a private file atomically.
func (f File) writeJSON(path string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return guideway.Errorf(guideway.CodeInternal, "write %s: %w", path, err)
	}
	if err := atomicfile.Replace(path, string(data)+"\n"); err != nil {
		return f.writeError(err)
	}
	return nil
}
