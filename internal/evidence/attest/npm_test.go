package attest_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/guideway-dev/guideway/internal/evidence/attest"
)

// TestOtherImplementation verifies files with an implementation of DSSE in JavaScript: it
// accepts the file, reads the same payload, and refuses changed files.
func TestOtherImplementation(t *testing.T) {
	t.Parallel()
	node, program := os.Getenv("GUIDEWAY_TEST_NODE"), os.Getenv("GUIDEWAY_TEST_VERIFIER")
	if node == "" || program == "" {
		t.Skip("needs packages from npm; run conformance/attestation")
	}
	key, other := attest.NewPrivateKey(), attest.NewPrivateKey()
	dir := t.TempDir()
	write := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	public := write("key.pub", []byte(key.Public().PEM()))
	file := sign(t, newStatement(), key)
	edited := newStatement()
	edited.Predicate.Steps = edited.Predicate.Steps[1:]
	for name, c := range map[string]struct {
		file  []byte
		valid bool
	}{
		"valid":        {file, true},
		"removed step": {exchangePayload(t, file, edited), false},
		"foreign key":  {bytes.Replace(sign(t, newStatement(), other), []byte(other.Public().ID()), []byte(key.Public().ID()), 1), false},
	} {
		cmd := exec.CommandContext(t.Context(), node, program, write(name+".json", c.file), public, key.Public().ID())
		var messages bytes.Buffer
		cmd.Stderr = &messages
		out, err := cmd.Output()
		if (err == nil) != c.valid {
			t.Errorf("%s: %v: %s", name, err, &messages)
		}
		if c.valid && string(out) != payloadOf(t, file) {
			t.Errorf("%s: the payload is read as %s", name, out)
		}
		if !c.valid && !bytes.Contains(messages.Bytes(), []byte("signature verification failed")) {
			t.Errorf("%s: %s", name, &messages)
		}
	}
}
