//go:build !linux

package runner

import "errors"

// CheckSandbox returns an error if a command cannot be limited on this system.
func CheckSandbox(bool) error { return errors.New("only Linux has Landlock") }
