//go:build !unix

package catalog

import "io/fs"

// openNonblock has no effect on systems whose files cannot be pipes.
const openNonblock = 0

// inodeOf returns 0, because the system has no inode numbers.
func inodeOf(fs.FileInfo) uint64 { return 0 }
