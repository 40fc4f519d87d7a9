//go:build !unix

package atomicfile

import (
	"io/fs"
	"os"
)

// KeepOwner does nothing: this system has no root user.
func KeepOwner(*os.File) {}

func makeOwnedDir(string, fs.FileMode) {}
