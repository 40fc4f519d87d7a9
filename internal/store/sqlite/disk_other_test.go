//go:build !linux

package sqlite

import (
	"context"
	"errors"
	"io"
)

// fillDisk is not supported: it needs a limit on the size of files.
func fillDisk(context.Context, io.Writer) error { return errors.ErrUnsupported }

// fillDiskShared is not supported, like fillDisk.
func fillDiskShared(context.Context, io.Writer) error { return errors.ErrUnsupported }
