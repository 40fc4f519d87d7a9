package app

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/platform/safeopen"
	"github.com/guideway-dev/guideway/internal/workflow/doc"
)

// ReadDefinition reads a document, "-" from the standard input. It reads a byte
// more than a document may have, so that the parser says what is too long.
func (h *Host) ReadDefinition(ctx context.Context, name string) ([]byte, error) {
	return h.readFile(ctx, name, doc.DefaultMaxBytes)
}

// ReadInput reads a file, "-" from the standard input, of a size at the most; none
// bounds it where that is 0.
func (h *Host) ReadInput(ctx context.Context, name string, most int64) ([]byte, error) {
	if most <= 0 {
		most = 1<<62 - 1
	}
	data, err := h.readFile(ctx, name, most)
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > most {
		return nil, guideway.Errorf(guideway.CodeTooLarge, "%s is larger than %s", name, config.SizeText(most))
	}
	return data, nil
}

// readFile reads what the command line names: a regular file, or the standard input
// for "-". Where that is longer than most, one byte more than most shows it. It
// ends with ctx, whoever else the input waits for.
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
		return nil, ReadError(name, err)
	}
	return data, nil
}

// ReadError says why a file cannot be read, without naming it twice.
func ReadError(name string, err error) error {
	code, fix := guideway.CodeUnavailable, ""
	switch {
	case errors.Is(err, fs.ErrNotExist):
		code = guideway.CodeNotFound
	case errors.Is(err, safeopen.ErrSpecial):
		fix = "copy what it holds to a file, or give it by the standard input: -"
	}
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	e := guideway.Errorf(code, "cannot read %s: %w", name, err)
	e.Fix = fix
	return e
}

// InterruptedError is the error of a command that was ended from outside.
func InterruptedError(err error) error {
	return &guideway.Error{Code: guideway.CodeUnavailable, Message: "interrupted", Err: err}
}

// ParsePair reads NAME=VALUE.
func ParsePair(pair string) (name, value string, err error) {
	name, value, ok := strings.Cut(pair, "=")
	if name = strings.TrimSpace(name); !ok || name == "" {
		return "", "", guideway.Errorf(guideway.CodeInvalid, "%q is not name=value", pair).WithFix("--var name=value")
	}
	return name, value, nil
}

// ParseValue reads JSON, and anything else as the text that it is.
func ParseValue(text string) any {
	var value any
	if json.Unmarshal([]byte(text), &value) == nil {
		return value
	}
	return strings.TrimSpace(text)
}
