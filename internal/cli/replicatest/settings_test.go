package replicatest

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// upstreams returns the configured upstreams of a replica as JSON.
func (r *replica) upstreams(t *testing.T) string {
	_, text, _ := request(t, http.MethodGet, r.url("/api/upstreams"), r.token(), nil, nil)
	return string(text)
}

// waitForUpstream waits until a replica has, or has no, upstream with a name.
func (r *replica) waitForUpstream(t *testing.T, name string, has bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTime)
	defer cancel()
	for strings.Contains(r.upstreams(t), `"name":"`+name+`"`) != has {
		if ctx.Err() != nil {
			t.Fatalf("%s: %s\n%s", name, r.upstreams(t), r.log)
		}
	}
}

// TestUpstreamsAreShared checks that an upstream that was added on one machine, by a command
// or in its file, serves at the others, and that one that was removed does not.
func TestUpstreamsAreShared(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	a := c.newReplica()
	add := func(name string) {
		if out, err := c.command(a.home, "upstream", "add", name, "--", "cat"); err != nil {
			t.Fatalf("upstream add: %v\n%s", err, out)
		}
	}
	add("first")
	a.run()
	b := c.start()
	b.waitForUpstream(t, "first", true)
	add("second")
	a.waitForUpstream(t, "second", true)
	b.waitForUpstream(t, "second", true)
	if out, err := c.command(b.home, "upstream", "remove", "first"); err != nil {
		t.Fatalf("upstream remove: %v\n%s", err, out)
	}
	a.waitForUpstream(t, "first", false)
	file := filepath.Join(a.home, ".config", "guideway", "guideway.json")
	text, err := os.ReadFile(file)
	checkError(t, err)
	checkError(t, os.WriteFile(file, []byte(strings.ReplaceAll(string(text), "second", "edited")), 0o600))
	b.waitForUpstream(t, "edited", true)
	b.waitForUpstream(t, "second", false)
}
