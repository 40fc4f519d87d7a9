package authn

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	"github.com/guideway-dev/guideway"
)

const (
	// tokenPrefix lets scanners for leaked secrets know a token of ours.
	tokenPrefix = "gdw_"
	// tokenBytes is 256 bits.
	tokenBytes = 32
	// maxTokenFile bounds what is read of a token file.
	maxTokenFile = 4 << 10
)

// newToken makes a token.
func newToken() string {
	secret := make([]byte, tokenBytes)
	_, _ = rand.Read(secret) // never fails: the process ends instead
	return tokenPrefix + base64.RawURLEncoding.EncodeToString(secret)
}

// validToken tells whether a line can be a token: what the header field's
// grammar allows, and long enough not to be guessed. A token that a person has
// written need not be one of ours.
func validToken(s string) bool {
	return regexp.MustCompile(`^[A-Za-z0-9._~+/-]{32,512}=*$`).MatchString(s)
}

// LoadOrCreateToken reads the bearer token from the file at path, or makes one
// if there is no file; created says which. The file is the system's user's
// alone (0600, its directory 0700), and several processes that start at once
// agree on one token.
//
// A file that cannot be read, that others may read or that holds no token is
// an error with the way out of it, and is left as it is: a token is never
// replaced because reading it failed.
func LoadOrCreateToken(path string) (token string, created bool, err error) {
	token, err = loadToken(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return token, false, err
	}
	token = newToken()
	err = createExclusively(path, token+"\n")
	if errors.Is(err, fs.ErrExist) { // another process was faster
		token, err = loadToken(path)
		return token, false, err
	}
	if err != nil {
		return "", false, guideway.Errorf(guideway.CodeUnavailable, "create the token file: %w", err).
			WithFix("make the directory %s writable, or write a token of at least 32 characters to %s", filepath.Dir(path), path)
	}
	return token, true, nil
}

// loadToken reads a token file. The error is fs.ErrNotExist only if there is
// no file.
func loadToken(path string) (string, error) {
	file, err := openRegular(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, maxTokenFile))
	if err != nil {
		return "", unreadable(path, err)
	}
	token := strings.TrimSpace(string(text))
	if token == "" {
		return "", guideway.Errorf(guideway.CodeInvalid, "the token file %s is empty", path).
			WithFix("delete it to have a new token made; clients then need the new one")
	}
	if !validToken(token) {
		return "", guideway.Errorf(guideway.CodeInvalid,
			"the token file %s does not hold one token: 32 characters or more of letters, digits and -._~+/ on one line", path).
			WithFix("restore it, or delete it to have a new token made; clients then need the new one")
	}
	return token, nil
}

// openRegular opens a plain file that only its owner may read.
func openRegular(path string) (*os.File, error) {
	// Looked at before it is opened: opening a named pipe would wait.
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		return nil, guideway.Errorf(guideway.CodeInvalid, "the token file %s is not a plain file", path).
			WithFix("move away what is there")
	}
	var file *os.File
	if err == nil {
		file, err = os.Open(path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fs.ErrNotExist
	}
	if err != nil {
		return nil, unreadable(path, err)
	}
	if info, err = file.Stat(); err != nil {
		_ = file.Close()
		return nil, unreadable(path, err)
	}
	// Windows has no such bits; there the user's profile guards the file.
	if perm := info.Mode().Perm(); perm&0o077 != 0 && runtime.GOOS != "windows" {
		_ = file.Close()
		return nil, guideway.Errorf(guideway.CodeForbidden, "others may read the token file %s (its mode is %#o)", path, perm).
			WithFix("chmod 600 %s; if others use this machine, delete it instead to have a new token made", path)
	}
	return file, nil
}

func unreadable(path string, err error) error {
	return guideway.Errorf(guideway.CodeUnavailable, "read the token file: %w", err).
		WithFix("make %s readable for this user alone: chown and chmod 600", path)
}

// createExclusively makes a file that was not there, whole or not at all. It
// is a link to a finished temporary file: a process that sees the name sees
// the content.
func createExclusively(path, text string) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	temp, err := os.CreateTemp(dir, ".token-*") // 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(temp.Name()) }()
	_, err = temp.WriteString(text)
	err = errors.Join(err, temp.Sync(), temp.Close())
	if err != nil {
		return err
	}
	err = os.Link(temp.Name(), path)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		err = createInPlace(path, text) // a file system without hard links
	}
	if err != nil {
		return err
	}
	return syncDir(dir)
}

// createInPlace is createExclusively without links: of two processes that
// start at once one may see the file empty and end with an error, but never
// with another token.
func createInPlace(path, text string) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	return errors.Join(err, file.Sync(), file.Close())
}

// syncDir makes a new name durable. Not every system can sync a directory;
// then the name is as durable as that system makes it.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	_ = d.Sync()
	return d.Close()
}
