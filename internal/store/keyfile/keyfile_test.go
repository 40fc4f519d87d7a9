package keyfile

import (
	"bytes"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/run"
)

// childVariable is the environment variable with the path of the key that a child process
// loads and prints.
const childVariable = "GUIDEWAY_TEST_KEY"

func TestMain(m *testing.M) {
	path := os.Getenv(childVariable)
	if path == "" {
		os.Exit(m.Run())
	}
	key, _, err := LoadOrCreate(path)
	if err != nil {
		_, _ = os.Stderr.WriteString(err.Error())
		os.Exit(1)
	}
	_, _ = os.Stdout.WriteString(hex.EncodeToString(key))
}

func TestKeyStays(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "config", "key")
	key, created, err := LoadOrCreate(path)
	if err != nil || !created || len(key) != run.KeySize {
		t.Fatalf("got %d bytes, created %v, %v", len(key), created, err)
	}
	again, created, err := LoadOrCreate(path)
	if err != nil || created || !bytes.Equal(key, again) {
		t.Fatalf("the second call returns the same key: %v, created: %v, %v", bytes.Equal(key, again), created, err)
	}
	other, _, err := LoadOrCreate(filepath.Join(t.TempDir(), "key"))
	if err != nil || bytes.Equal(key, other) {
		t.Fatalf("the second key equals the first, or an error: %v", err)
	}
	text, err := os.ReadFile(path)
	if err != nil || !strings.HasPrefix(string(text), "gdwkey1_") || !strings.HasSuffix(string(text), "\n") {
		t.Errorf("the file contains %q, %v", text, err)
	}
	for name, mode := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != mode {
			t.Errorf("the mode of %s is %v, want %v (%v)", name, info.Mode().Perm(), mode, err)
		}
	}
}

// TestProcessesAgree checks that processes that start at the same time without a key file
// use the same key.
func TestProcessesAgree(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "key")
	type result struct {
		key []byte
		err error
	}
	results := make(chan result)
	const processes = 8
	for range processes {
		go func() {
			child := exec.CommandContext(t.Context(), os.Args[0])
			child.Env = append(os.Environ(), childVariable+"="+path)
			child.Stderr = os.Stderr
			key, err := child.Output()
			results <- result{key, err}
		}()
	}
	var first []byte
	for range processes {
		r := <-results
		if r.err != nil {
			t.Fatal(r.err)
		}
		if first == nil {
			first = r.key
		}
		if !bytes.Equal(first, r.key) {
			t.Errorf("one process has the key %s, another %s", first, r.key)
		}
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("%d files remain, want only the key (%v)", len(entries), err)
	}
}

// TestBadFiles checks that an invalid key file is an error and is not changed.
func TestBadFiles(t *testing.T) {
	t.Parallel()
	good := "gdwkey1_" + strings.Repeat("0a", run.KeySize) + "\n"
	for _, c := range []struct {
		name, text string
		mode       os.FileMode
		code       guideway.Code
	}{
		{"empty", "", 0o600, guideway.CodeInvalid},
		{"not ours", strings.Repeat("0a", run.KeySize), 0o600, guideway.CodeInvalid},
		{"short", "gdwkey1_0a0b\n", 0o600, guideway.CodeInvalid},
		{"long", strings.TrimSpace(good) + "0a\n", 0o600, guideway.CodeInvalid},
		{"no digits", "gdwkey1_" + strings.Repeat("zz", run.KeySize), 0o600, guideway.CodeInvalid},
		{"two keys", good + good, 0o600, guideway.CodeInvalid},
		{"others may read", good, 0o640, guideway.CodeForbidden},
		{"all may write", good, 0o602, guideway.CodeForbidden},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.code == guideway.CodeForbidden && runtime.GOOS == "windows" {
				t.Skip("file modes have no effect on Windows")
			}
			path := filepath.Join(t.TempDir(), "key")
			if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(path, c.mode); err != nil {
				t.Fatal(err)
			}
			_, _, err := LoadOrCreate(path)
			if guideway.ErrorCode(err) != c.code || guideway.ErrorFix(err) == "" {
				t.Fatalf("got %v (%s), want %s and a fix", err, guideway.ErrorCode(err), c.code)
			}
			if c.text != "" && strings.Contains(err.Error(), strings.TrimSpace(c.text)) {
				t.Error("the error contains the key")
			}
			if text, err := os.ReadFile(path); err != nil || string(text) != c.text {
				t.Errorf("the file was changed to %q (%v)", text, err)
			}
		})
	}
}

func TestDirectoryInTheWay(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	if _, _, err := LoadOrCreate(path); guideway.ErrorCode(err) != guideway.CodeInvalid {
		t.Errorf("got %v", err)
	}
	if _, _, err := LoadOrCreate(filepath.Join(path, "a\x00b", "key")); err == nil {
		t.Error("an invalid path returned a key")
	}
}

// TestFingerprint compares a fingerprint with a known answer, because stored fingerprints
// must stay valid.
func TestFingerprint(t *testing.T) {
	t.Parallel()
	key := make(run.Key, run.KeySize)
	for i := range key {
		key[i] = byte(i)
	}
	const want = "7b5f470cb3965bf82e49cd49b7d86ad4b86451f4c6242276cd06289ee335499f" // HMAC-SHA256(key, "guideway key fingerprint 1")
	if got := hex.EncodeToString(Fingerprint(key)); got != want {
		t.Errorf("the fingerprint is %s, want %s", got, want)
	}
}
