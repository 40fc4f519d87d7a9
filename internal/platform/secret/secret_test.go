package secret_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/guideway-dev/guideway/internal/platform/secret"
	"github.com/guideway-dev/guideway/internal/platform/secret/secrettest"
)

// detector detects credentials, but not personal data.
var detector secret.Detector

// TestCases checks that credentials are redacted and warned of, and that the text around
// them and similar words are not changed. Redacting twice is the same as redacting once.
func TestCases(t *testing.T) {
	t.Parallel()
	s := secret.NewScanner(secret.Detector{})
	for _, c := range secrettest.Cases() {
		got, found := detector.Redact(c.Text, "[redacted]")
		if got != c.Redacted || found != (c.Text != c.Redacted) {
			t.Errorf("%q became %q (%t), want %q", c.Text, got, found, c.Redacted)
		}
		if again, found := detector.Redact(got, "[redacted]"); again != got || found {
			t.Errorf("%q became %q in a second pass", got, again)
		}
		if warned := len(s.Scan(map[string]any{"text": c.Text})) > 0; warned != c.Warned {
			t.Errorf("%q is warned of: %t, want %t", c.Text, warned, c.Warned)
		}
	}
}

// TestKnownFormatsAreRedacted checks that credentials of known formats are redacted at any
// position, even several in a row, and that the text around them is unchanged.
func TestKnownFormatsAreRedacted(t *testing.T) {
	t.Parallel()
	for _, c := range secrettest.Formats() {
		for _, around := range [][2]string{{"", ""}, {"use ", " for it"}, {`{"x":"`, `"}`}, {"(", ")"}, {"é", "é"}, {"\n", "\n"}, {"x=", ";"}, {"", ",\nend"}} {
			text := c.Text
			if around[0] == `{"x":"` {
				text = strings.ReplaceAll(text, "\n", `\n`)
			}
			if got, _ := detector.Redact(around[0]+text+around[1], "[redacted]"); got != around[0]+"[redacted]"+around[1] {
				t.Errorf("%s within %q became %q", text, around, got)
			}
		}
		if got, _ := detector.Redact(c.Text+" "+c.Text+"\n"+c.Text, "X"); got != "X X\nX" {
			t.Errorf("three of %s became %q", c.Text, got)
		}
	}
}

// TestNamesSecret checks which keys name a secret.
func TestNamesSecret(t *testing.T) {
	t.Parallel()
	for key, hidden := range map[string]bool{
		"otp": true, "card_number": true, "connectionString": true, "db_pass": true, "passcode": true, "cvv": true, "accessToken": true, "refresh_token": true, "token": true,
		"signature": false, "max_tokens": false, "pinned": false, "discard": false, "key": false,
		"nextPageToken": false, "next_token": false, "page-token": false, "continuationToken": false, "NextToken": false, "nextPasswordToken": true,
	} {
		if secret.NamesSecret(key) != hidden {
			t.Errorf("%s names a secret: want %v", key, hidden)
		}
	}
}

// TestRulesAreNamed checks that the replacement contains the name of the rule if the caller
// passes no replacement.
func TestRulesAreNamed(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"AKIA" + strings.Repeat("Q2", 8) + "!":    "[redacted: aws-access-key]!",
		"postgres://ann:hunter2@db.example.com/x": "postgres://ann:[redacted: url-password]@db.example.com/x",
		"passphrase: hunter2":                     "passphrase: [redacted: named]",
		`{"pin": 1234}`:                           `{"pin":"[redacted]"}`,
	} {
		if got, found := detector.Redact(text, ""); !found || got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

// TestKeysStayApart checks that the values of two keys are kept if redaction makes the keys
// equal.
func TestKeysStayApart(t *testing.T) {
	t.Parallel()
	key := "AKIA" + strings.Repeat("Q2", 7)
	got, found := detector.RedactTree("", map[string]any{key + "Q2": 1, key + "Q3": 2, "[redacted] 2": 3, "a": []any{key + "Q2"}}, "[redacted]")
	want := map[string]any{"[redacted]": 1, "[redacted] 3": 2, "[redacted] 2": 3, "a": []any{"[redacted]"}}
	if diff := cmp.Diff(want, got); !found || diff != "" {
		t.Error(diff)
	}
}

// TestTextAfterJSONIsKept checks that in a text of several JSON values, or with text after
// them, each value is redacted by its keys, and that no part of the text is lost.
func TestTextAfterJSONIsKept(t *testing.T) {
	t.Parallel()
	key := "AKIA" + strings.Repeat("Q2", 8)
	for text, want := range map[string]string{
		` {"pin": 1234} `:                               ` {"pin":"[redacted]"} `,
		`{"a": "` + key + `"} and more`:                 `{"a":"[redacted]"} and more`,
		`{"a": 1} and ` + key:                           `{"a": 1} and [redacted]`,
		`{"pin": 1} and ` + key + " or":                 `{"pin":"[redacted]"} and [redacted] or`,
		"{\"pin\": 1}\n{\"a\": 1}\n{\"pin\": 2}\n":      "{\"pin\":\"[redacted]\"}\n{\"a\": 1}\n{\"pin\":\"[redacted]\"}\n",
		"{\"a\": 1}\r\n\t[{\"pin\": 2}] \"" + key + `"`: "{\"a\": 1}\r\n\t[{\"pin\":\"[redacted]\"}] \"[redacted]\"",
		`[info] the key is ` + key:                      `[info] the key is [redacted]`,
		`{"a": 1, "b": "` + key + `"`:                   `{"a": 1, "b": "[redacted]"`,
		`{"n": 12345678901234567890, "pin": "1x"}`:      `{"n":12345678901234567890,"pin":"[redacted]"}`,
	} {
		if got, found := detector.Redact(text, "[redacted]"); got != want || !found {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
	if got, found := detector.Redact("{} []\n{\"a\":1} x", ""); got != "{} []\n{\"a\":1} x" || found {
		t.Errorf("a text without credentials became %q", got)
	}
}

// TestLongTextIsReadOnce checks that the search for a mark passes over a text once: the time
// would otherwise grow with the square of the length, and this test would not end.
func TestLongTextIsReadOnce(t *testing.T) {
	t.Parallel()
	before := strings.Repeat("x", 2<<20)
	if got, _ := detector.Redact(before+" AKIA"+strings.Repeat("Q2", 8), "X"); got != before+" X" {
		t.Errorf("a text of %d bytes became one of %d bytes", len(before)+21, len(got))
	}
}
