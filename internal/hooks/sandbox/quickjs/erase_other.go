//go:build !linux

package quickjs

// erase makes bytes zeros.
func erase(b []byte) { clear(b) }
