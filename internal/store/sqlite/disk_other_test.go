//go:build !linux

package sqlite

import (
	"context"
	"errors"
	"io"
)

// fillDisk needs a bound on the size of files.
func fillDisk(context.Context, io.Writer) error { return errors.ErrUnsupported }

// fillTogether needs one, too.
func fillTogether(context.Context, io.Writer) error { return errors.ErrUnsupported }
