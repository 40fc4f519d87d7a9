// Package digest names a text by its hash.
package digest

import (
	"crypto/sha256"
	"encoding/hex"
)

// Hex returns the SHA-256 of a text in hexadecimal digits.
func Hex[T ~string | ~[]byte](text T) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
