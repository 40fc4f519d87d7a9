package secret_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/guideway-dev/guideway/internal/platform/secret"
)

// TestScan checks that secrets are found at any depth and reported in the order of their
// paths, and that a text with a secret is found again in a second scan.
func TestScan(t *testing.T) {
	t.Parallel()
	s := secret.NewScanner(secret.Detector{})
	token := "ghp_" + strings.Repeat("a1B2c3D4", 5)
	long := strings.Repeat("a line of text\n", 1000)
	tree := map[string]any{
		"b":        []any{"plain", token, map[string]any{"a/b~c": token}},
		"a":        long + token + "\n" + long,
		"n":        7.0,
		"prose":    "gh is a program; ghp_ begins a token",
		"password": "hunter2-hunter2",
		"notes":    "hunter2-hunter2",
		"nested":   map[string]any{"api_key": []any{"0123456789abcdef"}},
		"long":     long,
	}
	var rules, paths []string
	for range 2 {
		rules, paths = nil, nil
		for _, f := range s.Scan(tree) {
			rules, paths = append(rules, f.Rule), append(paths, f.Path)
		}
		if diff := cmp.Diff([]string{"/a", "/b/1", "/b/2/a~1b~0c", "/nested/api_key/0", "/password"}, paths); diff != "" {
			t.Errorf("the paths (-want +got):\n%s", diff)
		}
	}
	if len(rules) == 5 && (rules[0] != rules[1] || rules[3] != "password" || rules[4] != "password") {
		t.Errorf("the rules are %q", rules)
	}
}

// TestScanOfAssignments checks the values of a member that names a credential: one word of 8
// to 4096 bytes that is not a placeholder.
func TestScanOfAssignments(t *testing.T) {
	t.Parallel()
	s := secret.NewScanner(secret.Detector{})
	for value, want := range map[string]int{
		"1234567": 0, "12345678": 1, strings.Repeat("k9", 2048): 1, strings.Repeat("k9", 2048) + "k": 0,
		"two words": 0, "two\tword": 0, "two\nline": 0, "<your key>": 0, "${SECRET_KEY}": 0, "********": 0, "changeme": 0, "": 0,
	} {
		if got := s.Scan(map[string]any{"secret": value}); len(got) != want {
			t.Errorf("the secret %.20q (%d bytes): %d findings, want %d", value, len(value), len(got), want)
		}
		if got := s.Scan(map[string]any{"title": value}); len(got) != 0 {
			t.Errorf("the title %.20q: %d findings", value, len(got))
		}
	}
}

// TestScanOfLikelyAssignments checks members whose names are also used for values that are
// not secret: only a value that is not a word, a number, an identifier or a UUID is a
// finding.
func TestScanOfLikelyAssignments(t *testing.T) {
	t.Parallel()
	s := secret.NewScanner(secret.Detector{})
	const random, uuid = "q7Lx0RbZ4mWt9Kd2VhYs", "550e8400-e29b-41d4-a716-446655440000"
	for _, c := range []struct {
		key, value string
		want       int
	}{
		{"token", random, 1},
		{"token", random[:12], 1},
		{"token", random[:11], 0},
		{"STRIPE_KEY", random, 1},
		{"aws_secret_access_key", random, 1},
		{"sessionToken", random, 1},
		{"stripe_key", random, 1},
		{"pw", "Tr0ub4dor", 1},
		{"db.pass", "hunter2222", 1},
		{"adminPasswort", "gEh3im999", 1},
		{"PWD", "Sommer2024!", 1},
		{"token", uuid, 0},
		{"token", "identifier-of-lexer", 0},
		{"token", "12345678901234", 0},
		{"nextPageToken", random, 0},
		{"CACHE_KEY", random, 0},
		{"pass", "12/12 tests", 0},
		{"pass", "required", 0},
		{"PWD", "/home/ann/src2/x", 0},
		{"tokens", random, 0},
		{"key", random, 0},
		{"id", random, 0},
		{"bypass", "hunter2222", 0},
		{"STRIPE_KEY", "${STRIPE_KEY_2024}", 0},
		{"token", "<token12345678>", 0},
	} {
		if got := s.Scan(map[string]any{c.key: c.value}); len(got) != c.want {
			t.Errorf("%s: %q has %d findings, want %d", c.key, c.value, len(got), c.want)
		}
	}
}

// TestScanIsBounded checks that a context has at most 50 findings.
func TestScanIsBounded(t *testing.T) {
	t.Parallel()
	token := "ghp_" + strings.Repeat("a1B2c3D4", 5)
	for count, want := range map[int]int{49: 49, 50: 50, 51: 50, 500: 50} {
		if got := len(secret.NewScanner(secret.Detector{}).Scan(map[string]any{"list": slices.Repeat([]any{token}, count)})); got != want {
			t.Errorf("%d secrets: %d findings, want %d", count, got, want)
		}
	}
}
