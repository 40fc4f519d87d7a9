//go:build !unix

package safeopen

// nonblock is for systems whose files can be pipes.
const nonblock = 0
