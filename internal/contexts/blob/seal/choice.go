package seal

import (
	"context"
	"errors"
	"strings"

	"github.com/guideway-dev/guideway"
)

// FirstOf leaves the choice among sources open: where a store has its master key,
// it is the source that has it, and no other is asked; where it has none yet, the
// first that can keep one. Which one it was is noted with the key, so that a source
// that fails later is an error, and never a reason to take the next.
type FirstOf []Source

var _ Source = FirstOf{}

// Kind implements Source.
func (f FirstOf) Kind() string {
	var kinds []string
	for _, one := range f {
		kinds = append(kinds, one.Kind())
	}
	return strings.Join(kinds, " or ")
}

// Fix implements Source.
func (f FirstOf) Fix() string {
	var fixes []string
	for _, one := range f {
		fixes = append(fixes, one.Fix())
	}
	return strings.Join(fixes, "; or ")
}

// Load implements Source: the first secret that there is.
func (f FirstOf) Load(ctx context.Context, salt []byte, create bool) ([]byte, error) {
	_, secret, err := f.begin(ctx, salt, create)
	return secret, err
}

// begin gives the first secret, and the kind of its source.
func (f FirstOf) begin(ctx context.Context, salt []byte, create bool) (kind string, secret []byte, err error) {
	var failed []error
	for _, one := range f {
		secret, err := one.Load(ctx, salt, create)
		if err == nil {
			return one.Kind(), secret, nil
		}
		failed = append(failed, err)
	}
	return "", nil, guideway.Errorf(guideway.CodeUnavailable, "no place for a master key: %w", errors.Join(failed...)).WithFix("%s", f.Fix())
}

// beginning loads the secret of a store that has none yet, and says of which kind
// its source is.
func beginning(ctx context.Context, source Source, salt []byte) (kind string, secret []byte, err error) {
	if several, ok := source.(FirstOf); ok {
		return several.begin(ctx, salt, true)
	}
	secret, err = source.Load(ctx, salt, true)
	return source.Kind(), secret, err
}

// ofKind gives the source of a kind where there is a choice.
func ofKind(source Source, kind string) Source {
	several, _ := source.(FirstOf)
	for _, one := range several {
		if one.Kind() == kind {
			return one
		}
	}
	return source
}
