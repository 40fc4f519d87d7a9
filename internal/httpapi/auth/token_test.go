package auth_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
)

// tokenPathVariable is an environment variable with a path. If it is set, the test binary
// loads or creates the token at that path and prints it.
const tokenPathVariable = "AUTHN_TEST_TOKEN_PATH"

func TestMain(m *testing.M) {
	if path := os.Getenv(tokenPathVariable); path != "" {
		token, _, err := auth.LoadOrCreateToken(path)
		if err != nil {
			_, _ = os.Stderr.WriteString(err.Error())
			os.Exit(1)
		}
		_, _ = os.Stdout.WriteString(token)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestTokenIsCreatedOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a", "b", "token")
	first, created, err := auth.LoadOrCreateToken(path)
	if err != nil || !created {
		t.Fatalf("first start: created %v, %v", created, err)
	}
	if len(first) < 43 {
		t.Errorf("the token %q holds less than 256 bits", first)
	}
	second, created, err := auth.LoadOrCreateToken(path)
	if err != nil || created || second != first {
		t.Errorf("second start: %q, created %v, %v; want %q", second, created, err, first)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("the directory has %v (%v), want the token alone", entries, err)
	}
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no permission bits")
	}
	for name, want := range map[string]fs.FileMode{path: 0o600, filepath.Dir(path): 0o700, filepath.Dir(filepath.Dir(path)): 0o700} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("mode of %s: %#o, want %#o", filepath.Base(name), got, want)
		}
	}
}

func TestTokenRaceInOneProcess(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "token")
	const starters = 32
	tokens := make([]string, starters)
	var creators int
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := range starters {
		wg.Go(func() {
			token, created, err := auth.LoadOrCreateToken(path)
			if err != nil {
				t.Errorf("starter %d: %v", i, err)
			}
			mu.Lock()
			defer mu.Unlock()
			tokens[i] = token
			if created {
				creators++
			}
		})
	}
	wg.Wait()
	checkAgreed(t, tokens)
	if creators != 1 {
		t.Errorf("%d processes report that they created the token, want 1", creators)
	}
}

func TestTokenRaceBetweenProcesses(t *testing.T) {
	t.Parallel()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "data", "token")
	tokens := make([]string, 6)
	var wg sync.WaitGroup
	for i := range tokens {
		wg.Go(func() {
			cmd := exec.CommandContext(t.Context(), exe)
			cmd.Env = append(os.Environ(), tokenPathVariable+"="+path)
			out, err := cmd.Output()
			if err != nil {
				t.Errorf("process %d: %v", i, err)
			}
			tokens[i] = string(out)
		})
	}
	wg.Wait()
	checkAgreed(t, tokens)
}

func checkAgreed(t *testing.T, tokens []string) {
	t.Helper()
	for i, token := range tokens {
		if token == "" || token != tokens[0] {
			t.Errorf("starter %d has the token %q, starter 0 %q", i, token, tokens[0])
		}
	}
}

func TestInvalidTokenFile(t *testing.T) {
	t.Parallel()
	good := strings.Repeat("a", 40) + "\n"
	tests := []struct {
		name    string
		make    func(t *testing.T, path string)
		code    guideway.Code
		message string
		unix    bool
	}{
		{name: "empty", make: writeToken("", 0o600), code: guideway.CodeInvalid, message: "is empty"},
		{name: "blank", make: writeToken(" \n\n", 0o600), code: guideway.CodeInvalid, message: "is empty"},
		{name: "too short", make: writeToken("secret\n", 0o600), code: guideway.CodeInvalid, message: "does not contain one token"},
		{name: "two lines", make: writeToken(good+good, 0o600), code: guideway.CodeInvalid, message: "does not contain one token"},
		{name: "binary", make: writeToken(strings.Repeat("\x00\xff", 40), 0o600), code: guideway.CodeInvalid, message: "does not contain one token"},
		{name: "huge", make: writeToken(strings.Repeat("a", 1<<20), 0o600), code: guideway.CodeInvalid, message: "does not contain one token"},
		{name: "readable by the group", make: writeToken(good, 0o640), code: guideway.CodeForbidden, message: "other users have access", unix: true},
		{name: "readable by all", make: writeToken(good, 0o644), code: guideway.CodeForbidden, message: "other users have access", unix: true},
		{name: "a directory", make: func(t *testing.T, path string) {
			t.Helper()
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
		}, code: guideway.CodeInvalid, message: "not a regular file"},
		{name: "in a place that is a file", make: func(t *testing.T, path string) {
			t.Helper()
			writeToken(good, 0o600)(t, filepath.Dir(path))
		}, code: guideway.CodeUnavailable, message: "token file"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if tt.unix && runtime.GOOS == "windows" {
				t.Skip("Windows has no permission bits")
			}
			path := filepath.Join(t.TempDir(), "d", "token")
			if tt.message != "token file" {
				if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			tt.make(t, path)
			before, _ := os.ReadFile(path)
			checkRefused(t, path, tt.code, tt.message)
			after, _ := os.ReadFile(path)
			if string(after) != string(before) {
				t.Error("the file was changed")
			}
		})
	}
}

func writeToken(text string, mode fs.FileMode) func(*testing.T, string) {
	return func(t *testing.T, path string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil { // independent of the umask
			t.Fatal(err)
		}
	}
}

func checkRefused(t *testing.T, path string, code guideway.Code, message string) {
	t.Helper()
	token, created, err := auth.LoadOrCreateToken(path)
	if token != "" || created || guideway.ErrorCode(err) != code || !strings.Contains(err.Error(), message) {
		t.Errorf("token %q, created %v, error %v (%s); want no token and %s with %q",
			token, created, err, guideway.ErrorCode(err), code, message)
	}
	if guideway.ErrorFix(err) == "" {
		t.Errorf("the error %v has no fix", err)
	}
}

// If an existing token file cannot be read, no new token replaces it.
func TestTokenFileUnreadable(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no permission bits")
	}
	path := filepath.Join(t.TempDir(), "token")
	writeToken(strings.Repeat("a", 40), 0o000)(t, path)
	if file, err := os.Open(path); err == nil {
		_ = file.Close()
		t.Skip("this user (root) reads files whatever their mode")
	}
	checkRefused(t, path, guideway.CodeUnavailable, "read the token file")
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(path); err != nil || len(text) != 40 {
		t.Errorf("the file now has %q, %v", text, err)
	}
}

// No token is created if the file is a loop of symbolic links, which not even root can
// read.
func TestTokenFileIsALinkLoop(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "token")
	if err := os.Symlink(path, path); err != nil {
		t.Skipf("symbolic links are not supported: %v", err)
	}
	checkRefused(t, path, guideway.CodeUnavailable, "read the token file")
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) || err == nil {
		t.Errorf("the link was removed: %v", err)
	}
}

func TestTokenDirectoryIsReadOnly(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(dir, 0o700) })
	if file, err := os.CreateTemp(dir, "probe"); err == nil {
		_ = file.Close()
		_ = os.Remove(file.Name())
		t.Skip("this user (root) writes directories whatever their mode")
	}
	checkRefused(t, filepath.Join(dir, "token"), guideway.CodeUnavailable, "create the token file")
}
