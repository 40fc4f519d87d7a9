// Package keyfile keeps the key that signs the chains of the journal in a file outside of
// the journal. Without the key, write access to the journal is not enough to forge events.
package keyfile

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/atomicfile"
	"github.com/guideway-dev/guideway/internal/run"
)

const (
	// prefix identifies the content for readers and for secret scanners.
	prefix = "gdwkey1_"
	// maxBytes bounds the size of the file.
	maxBytes = 4 << 10
)

// LoadOrCreate reads the key from the file at path, or creates the key if there is no file;
// created is then true. Only the current user can access the file (0600, its directory
// 0700). Several processes that start at the same time agree on one key.
//
// A file that cannot be read, that others can read, or that does not contain a key is an
// error with a fix. The file is not replaced, because with another key no existing run
// could be verified.
func LoadOrCreate(path string) (key run.Key, created bool, err error) {
	file := atomicfile.File{
		Path: path, What: "key file", MaxBytes: maxBytes,
		IfSeen: "note that anyone who has read the key can forge events",
	}
	text, created, err := file.ReadOrCreate(newKeyText)
	if err != nil {
		return nil, false, err
	}
	key, ok := parseKey(text)
	if !ok {
		return nil, false, guideway.Errorf(guideway.CodeInvalid, "the key file %s does not contain a key, which is %q followed by %d hexadecimal digits", path, prefix, 2*run.KeySize).
			WithFix("restore the file from a backup; without its key, no existing run can be verified")
	}
	return key, created, nil
}

// Fingerprint returns a value that identifies a key and reveals nothing else about it. It
// differs from every MAC in a chain.
func Fingerprint(key run.Key) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte("guideway key fingerprint 1"))
	return h.Sum(nil)
}

// newKeyText creates a key and returns the text of its file.
func newKeyText() string {
	key := make(run.Key, run.KeySize)
	_, _ = rand.Read(key) // never returns an error: the process crashes instead
	return prefix + hex.EncodeToString(key) + "\n"
}

// parseKey parses the text of a key file.
func parseKey(text string) (run.Key, bool) {
	digits, ok := strings.CutPrefix(strings.TrimSpace(text), prefix)
	if !ok {
		return nil, false
	}
	key, err := hex.DecodeString(digits)
	return key, err == nil && len(key) == run.KeySize
}
