// Package app contains the parts that commands share: the process, the settings, the output
// and the stores that open at the first call.
package app

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/cli/passphrase"
	"golang.org/x/term"
)

// The exit codes.
const (
	ExitOK      = 0 // success
	ExitFailed  = 1 // the command failed
	ExitUsage   = 2 // the command line is invalid
	ExitInvalid = 3 // a definition is invalid
)

// Host is the process that a command runs in. A test can replace it.
type Host struct {
	In       io.Reader
	Out, Err io.Writer
	// Getenv returns the value of an environment variable.
	Getenv func(string) string
	// Environ lists all variables as NAME=value.
	Environ []string
	// Dir is the working directory.
	Dir string
	// InTerminal, OutTerminal and ErrTerminal report whether the streams are terminals.
	InTerminal, OutTerminal, ErrTerminal bool
	// ReadSecret reads a line from the terminal without echo. It is nil if the input is not
	// a terminal.
	ReadSecret func(ctx context.Context) (string, error)
	// Now returns the current time. Nil means time.Now.
	Now func() time.Time
	// PassphraseCost is the hashing cost of a new passphrase. Zero means the default.
	PassphraseCost passphrase.Cost
}

// NewSystemHost returns the host of the current process.
func NewSystemHost() Host {
	dir, err := os.Getwd()
	if err != nil {
		dir = "."
	}
	host := Host{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		Getenv:      os.Getenv,
		Environ:     os.Environ(),
		Dir:         dir,
		InTerminal:  term.IsTerminal(int(os.Stdin.Fd())),
		OutTerminal: term.IsTerminal(int(os.Stdout.Fd())),
		ErrTerminal: term.IsTerminal(int(os.Stderr.Fd())),
	}
	if host.InTerminal {
		host.ReadSecret = func(ctx context.Context) (string, error) { return readSecret(ctx, int(os.Stdin.Fd())) }
	}
	return host
}

// Home returns the home directory of the user, or "".
func (h *Host) Home() string { return cmp.Or(h.Getenv("HOME"), h.Getenv("USERPROFILE")) }

// readSecret reads a line from a terminal without echo. It restores the echo if ctx ends
// first.
func readSecret(ctx context.Context, fd int) (string, error) {
	before, err := term.GetState(fd)
	if err != nil {
		return "", guideway.Errorf(guideway.CodeUnavailable, "ask at the terminal: %w", err)
	}
	text, err := readUntilDone(ctx, func() ([]byte, error) { return term.ReadPassword(fd) })
	if ctx.Err() != nil {
		_ = term.Restore(fd, before)
	}
	return string(text), err
}

// readUntilDone returns what read returns, or an error if ctx ends first. In that case the
// read continues until the process ends, because a read from a terminal cannot be
// interrupted.
func readUntilDone[T any](ctx context.Context, read func() (T, error)) (value T, err error) {
	done := make(chan struct{})
	var got T
	var failed error
	go func() {
		defer close(done)
		got, failed = read()
	}()
	select {
	case <-ctx.Done():
		return value, InterruptedError(ctx.Err())
	case <-done:
		return got, failed
	}
}

// UsageError is an error in the command line. The exit code is 2.
type UsageError struct{ Err error }

// Error returns the text of the cause.
func (u UsageError) Error() string { return u.Err.Error() }

// Unwrap returns the cause, which may carry a fix.
func (u UsageError) Unwrap() error { return u.Err }

// SilentError ends a command that has already printed its error, with an exit code.
type SilentError struct{ Code int }

func (s SilentError) Error() string { return fmt.Sprintf("exit code %d", s.Code) }
