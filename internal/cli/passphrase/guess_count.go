package passphrase

import (
	"encoding/json"
	"errors"
	"io/fs"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/atomicfile"
)

// guessCount counts wrong passphrases since the last right one.
type guessCount struct {
	Wrong int       `json:"wrong"`
	Last  time.Time `json:"last"`
}

const (
	// freeGuesses need not wait: people mistype.
	freeGuesses = 3
	firstWait   = 5 * time.Second
	longestWait = 5 * time.Minute
)

// remainingWait is how long the next guess has to wait from now on.
func (g guessCount) remainingWait(now time.Time) time.Duration {
	if g.Wrong < freeGuesses {
		return 0
	}
	wait := longestWait
	if doublings := g.Wrong - freeGuesses; doublings < 6 {
		wait = firstWait << doublings
	}
	since := now.Sub(g.Last)
	if since < 0 { // the clock was set back: the wait begins anew, and ends
		since = 0
	}
	return max(0, wait-since)
}

func (f File) guessPath() string { return f.Path + ".guesses" }

// readGuesses reads the count. One that cannot be read is an error: it must not be a
// way to guess without end.
func (f File) readGuesses() (guessCount, error) {
	var g guessCount
	data, err := readPrivate(f.guessPath())
	if errors.Is(err, fs.ErrNotExist) {
		return g, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &g)
	}
	if err != nil || g.Wrong < 0 {
		return g, guideway.Errorf(guideway.CodeUnavailable, "the count of wrong passphrases in %s cannot be read", f.guessPath()).
			WithFix("remove the file yourself, if nobody has tried to guess")
	}
	return g, nil
}

// writeJSON replaces a file by a private one, whole or not at all.
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
