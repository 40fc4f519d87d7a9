package passphrase_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/cli/passphrase"
)

const right = "four words in a row"

// passphraseFixture is a passphrase file with a fake clock and a low cost.
type passphraseFixture struct {
	passphrase.File
	now time.Time
}

func newDesk(t *testing.T) *passphraseFixture {
	t.Helper()
	d := &passphraseFixture{now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}
	d.File = passphrase.File{
		Path: filepath.Join(t.TempDir(), "config", "approval"),
		Cost: passphrase.Cost{Passes: 1, KiB: 8, Threads: 1},
		Now:  func() time.Time { return d.now },
	}
	return d
}

func (d *passphraseFixture) setPassphrase(t *testing.T) {
	t.Helper()
	if err := d.Set(t.Context(), "", right); err != nil {
		t.Fatal(err)
	}
}

// requireError checks the code and the text of an error, and that it has a fix.
func requireError(t *testing.T, err error, code guideway.Code, text string) {
	t.Helper()
	if guideway.ErrorCode(err) != code || !strings.Contains(err.Error(), text) || guideway.ErrorFix(err) == "" {
		t.Errorf("got %q (%s, fix %q), want %s with %q", err, guideway.ErrorCode(err), guideway.ErrorFix(err), code, text)
	}
}

// Approval is disabled until a passphrase is set, and then needs exactly that passphrase.
func TestDisabledUntilSet(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	err := d.Check(t.Context(), right)
	requireError(t, err, guideway.CodeForbidden, "is disabled")
	if isSet, setErr := d.IsSet(); isSet || setErr != nil || !errors.Is(err, passphrase.ErrNotSet) {
		t.Errorf("IsSet = %v, %v without a passphrase, and Check returned %v", isSet, setErr, err)
	}
	if _, err := os.Stat(filepath.Dir(d.Path)); !os.IsNotExist(err) {
		t.Errorf("Check created a directory: %v", err)
	}
	d.setPassphrase(t)
	if isSet, err := d.IsSet(); !isSet || err != nil {
		t.Errorf("set: %v %v", isSet, err)
	}
	if err := d.Check(t.Context(), right); err != nil {
		t.Error(err)
	}
	for _, wrong := range []string{"", right + " ", strings.ToUpper(right)} {
		requireError(t, d.Check(t.Context(), wrong), guideway.CodeForbidden, "incorrect passphrase")
	}
}

func TestFileIsSaltedHash(t *testing.T) {
	t.Parallel()
	d, other := newDesk(t), newDesk(t)
	d.setPassphrase(t)
	other.setPassphrase(t)
	one, err := os.ReadFile(d.Path)
	two, err2 := os.ReadFile(other.Path)
	if err != nil || err2 != nil || strings.Contains(string(one), right) || string(one) == string(two) {
		t.Errorf("%v %v: the files of equal passphrases contain the passphrase or are equal:\n%s%s", err, err2, one, two)
	}
	info, err := os.Stat(d.Path)
	if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
}

func TestChangePassphrase(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	requireError(t, d.Set(t.Context(), "", "seven77"), guideway.CodeInvalid, "fewer than 8 characters")
	d.setPassphrase(t)
	requireError(t, d.Set(t.Context(), "", "another one"), guideway.CodeForbidden, "incorrect passphrase")
	requireError(t, d.Set(t.Context(), "wrong", "another one"), guideway.CodeForbidden, "incorrect passphrase")
	if err := d.Check(t.Context(), right); err != nil {
		t.Fatalf("the passphrase changed although the change was refused: %v", err)
	}
	if err := d.Set(t.Context(), right, "another one"); err != nil {
		t.Fatal(err)
	}
	requireError(t, d.Check(t.Context(), right), guideway.CodeForbidden, "incorrect passphrase")
	if err := d.Check(t.Context(), "another one"); err != nil {
		t.Error(err)
	}
}

// TestGuessesAreDelayed checks that the wait after a wrong passphrase doubles up to five
// minutes, also for a new File of the same path. During the wait, the correct passphrase is
// refused as well.
func TestGuessesAreDelayed(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.setPassphrase(t)
	for range 3 {
		requireError(t, d.Check(t.Context(), "wrong"), guideway.CodeForbidden, "incorrect passphrase")
	}
	for _, wait := range []time.Duration{5, 10, 20, 40, 80, 160, 300, 300} {
		anew := passphrase.File{Path: d.Path, Now: d.Now}
		d.now = d.now.Add(wait*time.Second - 1)
		requireError(t, anew.Check(t.Context(), right), guideway.CodeForbidden, "wrong passphrases in a row")
		requireError(t, anew.Set(t.Context(), right, "another one"), guideway.CodeForbidden, "wrong passphrases in a row")
		d.now = d.now.Add(1)
		requireError(t, anew.Check(t.Context(), "wrong"), guideway.CodeForbidden, "incorrect passphrase")
	}
	// A clock that is set back does not extend the wait.
	d.now = d.now.Add(-1000 * time.Hour)
	requireError(t, d.Check(t.Context(), right), guideway.CodeForbidden, "the next attempt is possible in 5m0s")
	d.now = d.now.Add(1000*time.Hour + 5*time.Minute)
	if err := d.Check(t.Context(), right); err != nil {
		t.Fatal(err)
	}
	// The correct passphrase resets the count.
	requireError(t, d.Check(t.Context(), "wrong"), guideway.CodeForbidden, "incorrect passphrase")
	if err := d.Check(t.Context(), right); err != nil {
		t.Error(err)
	}
}

// Concurrent checks together get no more guesses than consecutive ones.
func TestConcurrentGuessesAreCounted(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.setPassphrase(t)
	var mu sync.Mutex
	looked := 0
	var all sync.WaitGroup
	for range 12 {
		all.Go(func() {
			err := d.Check(t.Context(), "wrong")
			mu.Lock()
			defer mu.Unlock()
			if strings.Contains(err.Error(), "incorrect passphrase") {
				looked++
			}
		})
	}
	all.Wait()
	if looked != 3 {
		t.Errorf("%d guesses were checked, want 3", looked)
	}
}

// A damaged file never counts as not set. Otherwise damaging it would allow setting another
// passphrase.
func TestDamagedFileRefusesApproval(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, text string
		code       guideway.Code
		mode       os.FileMode
	}{
		{"empty", "", guideway.CodeUnavailable, 0o600},
		{"no JSON", "x", guideway.CodeUnavailable, 0o600},
		{"another KDF", `{"version":1,"kdf":"none","cost":{"passes":1,"kib":8,"threads":1},"salt":"AAAAAAAAAAAAAAAAAAAAAA==","hash":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="}`, guideway.CodeUnavailable, 0o600},
		{"no salt", `{"version":1,"kdf":"argon2id","cost":{"passes":1,"kib":8,"threads":1},"hash":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="}`, guideway.CodeUnavailable, 0o600},
		{"all memory", `{"version":1,"kdf":"argon2id","cost":{"passes":1,"kib":4294967295,"threads":1},"salt":"AAAAAAAAAAAAAAAAAAAAAA==","hash":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="}`, guideway.CodeUnavailable, 0o600},
		{"too long", strings.Repeat(" ", 8<<10), guideway.CodeUnavailable, 0o600},
		{"readable for others", "{}", guideway.CodeForbidden, 0o644},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if tt.mode != 0o600 && runtime.GOOS == "windows" {
				t.Skip("Windows has no such bits")
			}
			d := newDesk(t)
			d.setPassphrase(t)
			if err := os.WriteFile(d.Path, []byte(tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(d.Path, tt.mode); err != nil {
				t.Fatal(err)
			}
			requireError(t, d.Check(t.Context(), right), tt.code, d.Path)
			requireError(t, d.Set(t.Context(), "", "another one"), tt.code, d.Path)
			if isSet, err := d.IsSet(); isSet || err == nil {
				t.Errorf("set: %v %v", isSet, err)
			}
		})
	}
	t.Run("the count", func(t *testing.T) {
		t.Parallel()
		d := newDesk(t)
		d.setPassphrase(t)
		if err := os.WriteFile(d.Path+".guesses", []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		requireError(t, d.Check(t.Context(), right), guideway.CodeUnavailable, "cannot be read")
	})
}

// A guess that cannot be counted is not checked.
func TestUncountedGuessIsRefused(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.setPassphrase(t)
	if err := os.Mkdir(d.Path+".guesses", 0o700); err != nil {
		t.Fatal(err)
	}
	requireError(t, d.Check(t.Context(), right), guideway.CodeUnavailable, "cannot be read")
}
