package auth

import (
	"regexp"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/atomicfile"
)

const (
	// tokenPrefix lets secret scanners recognize the token.
	tokenPrefix = "gdw_"
	// tokenBytes is 256 bits.
	tokenBytes = 32
	// maxTokenFile is the maximum size of a token file.
	maxTokenFile = 4 << 10
)

// validToken reports whether a line can be a token: it matches the header field's grammar
// and is long enough not to be guessed. A person may have written the token.
func validToken(s string) bool {
	return regexp.MustCompile(`^[A-Za-z0-9._~+/-]{32,512}=*$`).MatchString(s)
}

// LoadOrCreateToken reads the bearer token from the file at path. If there is no file, it
// creates one and created is true. The file is private to the operating system user (0600,
// its directory 0700). Several processes that start at the same time agree on one token.
//
// It returns an error with a fix, and leaves the file as it is, if the file cannot be read,
// if others may read it, or if it does not contain a token. It never replaces a token
// because a read failed.
func LoadOrCreateToken(path string) (token string, created bool, err error) {
	file := atomicfile.File{
		Path: path, What: "token file", MaxBytes: maxTokenFile, IfSeen: "delete the file to create a new token",
	}
	text, created, err := file.ReadOrCreate(func() string { return newSecret(tokenPrefix, tokenBytes) + "\n" })
	if err != nil {
		return "", false, err
	}
	token = strings.TrimSpace(text)
	if token == "" {
		return "", false, guideway.Errorf(guideway.CodeInvalid, "the token file %s is empty", path).
			WithFix("delete the file to create a new token; clients then need the new token")
	}
	if !validToken(token) {
		return "", false, guideway.Errorf(guideway.CodeInvalid,
			"the token file %s does not contain one token: 32 to 512 letters, digits and -._~+/ on one line", path).
			WithFix("restore the file, or delete it to create a new token; clients then need the new token")
	}
	return token, created, nil
}
