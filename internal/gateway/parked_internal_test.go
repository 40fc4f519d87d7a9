package gateway

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// A call that cannot be parked is refused with the reason: its client has too many, or the
// gateway is closing.
func TestRefusedParking(t *testing.T) {
	t.Parallel()
	p := &parking{calls: map[string]*parkedCall{}}
	_, cancel := context.WithCancelCause(t.Context())
	add := func(id, client string) error { return p.addCall(&parkedCall{id: id, client: client, cancel: cancel}) }
	for i := range maxParkedOf {
		if err := add(fmt.Sprint(i), "one"); err != nil {
			t.Fatal(err)
		}
	}
	if err := add("more", "one"); !errors.Is(err, errParkedFull) {
		t.Errorf("over the limit: %v", err)
	}
	if err := add("other", "two"); err != nil {
		t.Errorf("another client: %v", err)
	}
	p.closeAll()
	for _, client := range []string{"one", "two"} {
		if err := add("late", client); err == nil || errors.Is(err, errParkedFull) || !strings.Contains(err.Error(), "the call was not sent: the gateway is closing") {
			t.Errorf("in a closing gateway: %v", err)
		}
	}
}
