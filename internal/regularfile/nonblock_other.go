//go:build !unix

package regularfile

// nonblock is for systems whose files can be pipes.
const nonblock = 0
