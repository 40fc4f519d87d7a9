// Package keyfile keeps the key that authenticates the journal's chains, in a
// file outside of the journal: who can write the journal but not read the key
// cannot make events that fit.
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
	// prefix tells scanners for leaked secrets, and readers, what it is.
	prefix = "gdwkey1_"
	// maxBytes bounds what is read of the file.
	maxBytes = 4 << 10
)

// LoadOrCreate reads the key from the file at path, or makes one if there is no
// file; created says which. The file is the system's user's alone (0600, its
// directory 0700), and several processes that start at once agree on one key.
//
// A file that cannot be read, that others may read or that holds no key is an
// error with the way out of it, and is left as it is: with another key, no run
// that there is could be verified.
func LoadOrCreate(path string) (key run.Key, created bool, err error) {
	file := atomicfile.File{
		Path: path, What: "key file", MaxBytes: maxBytes,
		IfSeen: "know that whoever has read it can forge events",
	}
	text, created, err := file.ReadOrCreate(invent)
	if err != nil {
		return nil, false, err
	}
	key, ok := parse(text)
	if !ok {
		return nil, false, guideway.Errorf(guideway.CodeInvalid, "the key file %s does not hold a key: %s and %d hexadecimal digits", path, prefix, 2*run.KeySize).
			WithFix("restore it from a backup; without it no run that there is can be verified")
	}
	return key, created, nil
}

// Fingerprint tells one key from another, and nothing else about it. It is no MAC
// of anything that a chain holds.
func Fingerprint(key run.Key) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte("guideway key fingerprint 1"))
	return h.Sum(nil)
}

// invent makes a key, as it stands in the file.
func invent() string {
	key := make(run.Key, run.KeySize)
	_, _ = rand.Read(key) // never fails: the process ends instead
	return prefix + hex.EncodeToString(key) + "\n"
}

// parse reads a key as it stands in the file.
func parse(text string) (run.Key, bool) {
	digits, ok := strings.CutPrefix(strings.TrimSpace(text), prefix)
	if !ok {
		return nil, false
	}
	key, err := hex.DecodeString(digits)
	return key, err == nil && len(key) == run.KeySize
}
