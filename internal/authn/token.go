package authn

import (
	"regexp"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/privatefile"
)

const (
	// tokenPrefix lets scanners for leaked secrets know a token of ours.
	tokenPrefix = "gdw_"
	// tokenBytes is 256 bits.
	tokenBytes = 32
	// maxTokenFile bounds what is read of a token file.
	maxTokenFile = 4 << 10
)

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
	file := privatefile.File{
		Path: path, What: "token file", MaxBytes: maxTokenFile, IfSeen: "delete it instead to have a new token made",
	}
	text, created, err := file.ReadOrCreate(func() string { return newSecret(tokenPrefix, tokenBytes) + "\n" })
	if err != nil {
		return "", false, err
	}
	token = strings.TrimSpace(text)
	if token == "" {
		return "", false, guideway.Errorf(guideway.CodeInvalid, "the token file %s is empty", path).
			WithFix("delete it to have a new token made; clients then need the new one")
	}
	if !validToken(token) {
		return "", false, guideway.Errorf(guideway.CodeInvalid,
			"the token file %s does not hold one token: 32 characters or more of letters, digits and -._~+/ on one line", path).
			WithFix("restore it, or delete it to have a new token made; clients then need the new one")
	}
	return token, created, nil
}
