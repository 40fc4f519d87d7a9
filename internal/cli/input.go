package cli

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/definition/doc"
	"github.com/guideway-dev/guideway/internal/regularfile"
)

// readDefinition reads a document, "-" from the standard input. It reads a byte
// more than a document may have, so that the parser says what is too long.
func (h *Host) readDefinition(ctx context.Context, name string) ([]byte, error) {
	return h.read(ctx, name, doc.DefaultMaxBytes)
}

// readInput reads a file, "-" from the standard input, of a size at the most; none
// bounds it where that is 0.
func (h *Host) readInput(ctx context.Context, name string, most int64) ([]byte, error) {
	if most <= 0 {
		most = 1<<62 - 1
	}
	data, err := h.read(ctx, name, most)
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > most {
		return nil, guideway.Errorf(guideway.CodeTooLarge, "%s is larger than %s", name, config.SizeText(most))
	}
	return data, nil
}

// read reads what the command line names: a regular file, or the standard input
// for "-". Where that is longer than most, one byte more than most shows it. It
// ends with ctx, whoever else the input waits for.
func (h *Host) read(ctx context.Context, name string, most int64) ([]byte, error) {
	in := h.In
	if name != "-" {
		file, err := regularfile.Open(h.abs(name))
		if err != nil {
			return nil, unreadable(name, err)
		}
		defer func() { _ = file.Close() }()
		in = file
	}
	data, err := regularfile.Read(ctx, in, most)
	switch {
	case ctx.Err() != nil:
		return nil, interrupted(ctx.Err())
	case err != nil:
		return nil, unreadable(name, err)
	}
	return data, nil
}

// unreadable says why a file cannot be read, without naming it twice.
func unreadable(name string, err error) error {
	code, fix := guideway.CodeUnavailable, ""
	switch {
	case errors.Is(err, fs.ErrNotExist):
		code = guideway.CodeNotFound
	case errors.Is(err, regularfile.ErrSpecial):
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

// interrupted is the error of a command that was ended from outside.
func interrupted(err error) error {
	return &guideway.Error{Code: guideway.CodeUnavailable, Message: "interrupted", Err: err}
}

// parsePair reads NAME=VALUE.
func parsePair(pair string) (name, value string, err error) {
	name, value, ok := strings.Cut(pair, "=")
	if name = strings.TrimSpace(name); !ok || name == "" {
		return "", "", guideway.Errorf(guideway.CodeInvalid, "%q is not name=value", pair).WithFix("--var name=value")
	}
	return name, value, nil
}

// parseValue reads JSON, and anything else as the text that it is.
func parseValue(text string) any {
	var value any
	if json.Unmarshal([]byte(text), &value) == nil {
		return value
	}
	return strings.TrimSpace(text)
}
