// Package cli is the command line: it reads flags and configuration, wires the
// parts together and prints. What a command does lives in the package of its
// part; a command here is an options struct and the text of its output.
package app

import (
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
	ExitOK      = 0 // done
	ExitFailed  = 1 // the command failed
	ExitUsage   = 2 // the command line was wrong
	ExitInvalid = 3 // a definition is invalid
)

// Host is what a command sees of the process that it runs in, so that a test
// can stand in for it.
type Host struct {
	In       io.Reader
	Out, Err io.Writer
	// Getenv looks up an environment variable.
	Getenv func(string) string
	// Environ lists all variables as NAME=value.
	Environ []string
	// Dir is the working directory.
	Dir string
	// InTerminal, OutTerminal and ErrTerminal say whether a person types and
	// reads.
	InTerminal, OutTerminal, ErrTerminal bool
	// ReadSecret reads a line from the terminal without showing it. It is nil
	// where there is no terminal: then no secret is asked for.
	ReadSecret func(ctx context.Context) (string, error)
	// Now tells the time; nil is time.Now.
	Now func() time.Time
	// PassphraseCost is the work of checking a passphrase that is set from now
	// on; zero is as much as it should be.
	PassphraseCost passphrase.Cost
}

// NewSystemHost is the real process.
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

// readSecret reads a line of a terminal without echo. Where the context ends
// first, the echo is put back on.
func readSecret(ctx context.Context, fd int) (string, error) {
	before, err := term.GetState(fd)
	if err != nil {
		return "", guideway.Errorf(guideway.CodeUnavailable, "ask at the terminal: %w", err)
	}
	type answer struct {
		text []byte
		err  error
	}
	read := make(chan answer, 1)
	go func() {
		text, err := term.ReadPassword(fd)
		read <- answer{text, err}
	}()
	select {
	case <-ctx.Done():
		// The read ends with the process: a terminal cannot be interrupted.
		_ = term.Restore(fd, before)
		return "", InterruptedError(ctx.Err())
	case a := <-read:
		return string(a.text), a.err
	}
}

// UsageError is a wrong command line: exit code 2.
type UsageError struct{ Err error }

// Error returns the text of the cause.
func (u UsageError) Error() string { return u.Err.Error() }

// Unwrap gives the cause, so that its fix is found.
func (u UsageError) Unwrap() error { return u.Err }

// SilentError ends the command with a code after it has printed its own answer.
type SilentError struct{ Code int }

func (s SilentError) Error() string { return fmt.Sprintf("exit code %d", s.Code) }
