//go:build !linux

package quickjs

// eraseBytes clears bytes.
func eraseBytes(b []byte) { clear(b) }
