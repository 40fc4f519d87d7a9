//go:build !unix

package safeopen

// nonblock is zero on systems whose files cannot be pipes.
const nonblock = 0
