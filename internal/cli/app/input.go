package app

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/platform/safeopen"
	"github.com/guideway-dev/guideway/internal/workflow/doc"
)

// ReadDefinition reads a document, from the standard input if name is "-". It reads one
// byte more than the limit, so that the parser reports a document that is too large.
func (h *Host) ReadDefinition(ctx context.Context, name string) ([]byte, error) {
	return h.readFile(ctx, name, doc.DefaultMaxBytes)
}

// ReadInput reads a file, from the standard input if name is "-". most is the maximum number
// of bytes; 0 means no limit.
func (h *Host) ReadInput(ctx context.Context, name string, most int64) ([]byte, error) {
	if most <= 0 {
		most = 1<<62 - 1
	}
	data, err := h.readFile(ctx, name, most)
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > most {
		return nil, guideway.Errorf(guideway.CodeTooLarge, "%s is larger than %s", inputName(name), config.SizeText(most)).
			WithFix("pass a file of at most %s", config.SizeText(most))
	}
	return data, nil
}

// readFile reads a regular file, or the standard input if name is "-". It reads at most one
// byte more than most, and stops when ctx is done.
func (h *Host) readFile(ctx context.Context, name string, most int64) ([]byte, error) {
	in := h.In
	if name != "-" {
		file, err := safeopen.Open(h.Abs(name))
		if err != nil {
			return nil, ReadError(name, err)
		}
		defer func() { _ = file.Close() }()
		in = file
	}
	data, err := safeopen.Read(ctx, in, most)
	switch {
	case ctx.Err() != nil:
		return nil, InterruptedError(ctx.Err())
	case err != nil:
		return nil, ReadError(inputName(name), err)
	}
	return data, nil
}

// inputName returns the name of an input in messages.
func inputName(name string) string {
	if name == "-" {
		return "standard input"
	}
	return name
}

func isDir(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// ReadError returns the error for a file that cannot be read, in which the file name occurs
// only once.
func ReadError(name string, err error) error {
	code, fix := guideway.CodeUnavailable, ""
	switch {
	case errors.Is(err, fs.ErrNotExist):
		code = guideway.CodeNotFound
	case errors.Is(err, fs.ErrPermission):
		fix = "make the file readable for this user"
	case isDir(name):
		fix = "pass the path of a file in the directory"
	case errors.Is(err, safeopen.ErrSpecial):
		fix = "copy the content to a regular file, or pipe it to the standard input and pass - as the file name"
	}
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	e := guideway.Errorf(code, "cannot read %s: %w", name, err)
	e.Fix = fix
	return e
}

// InterruptedError returns the error of a command that was interrupted.
func InterruptedError(err error) error {
	return &guideway.Error{Code: guideway.CodeUnavailable, Message: "interrupted", Err: err}
}

// ParsePair parses NAME=VALUE. fix is the fix of its error.
func ParsePair(pair, fix string) (name, value string, err error) {
	name, value, ok := strings.Cut(pair, "=")
	if name = strings.TrimSpace(name); !ok || name == "" {
		return "", "", guideway.Errorf(guideway.CodeInvalid, "%q is not name=value", pair).WithFix("%s", fix)
	}
	return name, value, nil
}

// ParsePairs parses a list of NAME=VALUE. The last value of a name wins.
func ParsePairs(list []string, fix string) (map[string]string, error) {
	out := make(map[string]string, len(list))
	for _, pair := range list {
		name, value, err := ParsePair(pair, fix)
		if err != nil {
			return nil, UsageError{Err: err}
		}
		out[name] = value
	}
	return out, nil
}

// ParseValue parses JSON. Text that is not JSON is returned as a string without surrounding
// space.
func ParseValue(text string) any {
	var value any
	if json.Unmarshal([]byte(text), &value) == nil {
		return value
	}
	return strings.TrimSpace(text)
}
