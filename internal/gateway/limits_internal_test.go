package gateway

import (
	"strings"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/gateway/upstream"
)

// The limit of a client counts the calls of that client only: another client of the same
// user, another user with a client of the same name, and another token of the user have
// limits of their own.
func TestEachClientHasItsOwnLimit(t *testing.T) {
	t.Parallel()
	g, err := New(Options{Key: []byte(strings.Repeat("k", 32)), ClientPerMinute: 2})
	if err != nil {
		t.Fatal(err)
	}
	m := &member{Upstream: upstream.New(upstream.Spec{Name: "one"}, upstream.Options{})}
	called := &tool{entry: entry{member: m, name: "one__echo", original: "echo"}}
	clients := map[string]*Client{
		"a client":                  {Principal: guideway.Principal{User: "ann", Client: "editor"}},
		"another client":            {Principal: guideway.Principal{User: "ann", Client: "terminal"}},
		"another user":              {Principal: guideway.Principal{User: "bob", Client: "editor"}},
		"another token of the user": {Principal: guideway.Principal{User: "ann", Client: "editor"}, Holder: "phone"},
	}
	for name, c := range clients {
		if err := g.checkLimits(c, called); err != nil {
			t.Errorf("%s: the first call: %v", name, err)
		}
		if err := g.checkRequestLimits(c, m, Request{}); err != nil {
			t.Errorf("%s: the second request: %v", name, err)
		}
	}
	for name, c := range clients {
		again := *c // a limit belongs to the client, not to a connection
		again.Session = "new"
		if err := g.checkLimits(&again, called); err == nil || !strings.Contains(err.Error(), "too many calls of this client") {
			t.Errorf("%s: a third call: %v", name, err)
		}
		if err := g.checkRequestLimits(&again, m, Request{}); err == nil {
			t.Errorf("%s: a third request is allowed", name)
		}
	}
}
