package seal

import (
	"context"
	"errors"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/lists"
)

// FirstOf chooses among sources: for a new store, the first one that can load or create a
// secret. The kind of that source is stored with the identification of the key. Later only
// the source of that kind is used, and its failure is an error.
type FirstOf []Source

var _ Source = FirstOf{}

// Kind implements Source.
func (f FirstOf) Kind() string {
	kinds := lists.Map(f, func(one Source) string { return one.Kind() })
	return strings.Join(kinds, " or ")
}

// Fix implements Source.
func (f FirstOf) Fix() string {
	fixes := lists.Map(f, func(one Source) string { return one.Fix() })
	return strings.Join(fixes, "; or ")
}

// Load implements Source. It returns the first available secret.
func (f FirstOf) Load(ctx context.Context, salt []byte, create bool) ([]byte, error) {
	_, secret, err := f.firstSecret(ctx, salt, create)
	return secret, err
}

// firstSecret returns the first available secret, and the kind of its source.
func (f FirstOf) firstSecret(ctx context.Context, salt []byte, create bool) (kind string, secret []byte, err error) {
	var failed []error
	var fixes []string
	for _, one := range f {
		secret, err := one.Load(ctx, salt, create)
		if err == nil {
			return one.Kind(), secret, nil
		}
		failed = append(failed, err)
		fixes = append(fixes, fixOf(one, salt))
	}
	return "", nil, guideway.Errorf(guideway.CodeUnavailable, "no source of the master key can be used: %w", errors.Join(failed...)).WithFix("%s", strings.Join(fixes, "; or "))
}

// loadInitial loads the secret for a new store, and returns the kind of its source.
func loadInitial(ctx context.Context, source Source, salt []byte) (kind string, secret []byte, err error) {
	if several, ok := source.(FirstOf); ok {
		return several.firstSecret(ctx, salt, true)
	}
	secret, err = source.Load(ctx, salt, true)
	return source.Kind(), secret, err
}

// ofKind returns the source with the kind if source is a FirstOf that contains one,
// otherwise source.
func ofKind(source Source, kind string) Source {
	several, _ := source.(FirstOf)
	for _, one := range several {
		if one.Kind() == kind {
			return one
		}
	}
	return source
}
