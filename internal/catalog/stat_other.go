//go:build !unix

package catalog

import "io/fs"

// openNonblock is for systems whose files can be pipes.
const openNonblock = 0

// inodeOf identifies a file on its device, or is 0.
func inodeOf(fs.FileInfo) uint64 { return 0 }
