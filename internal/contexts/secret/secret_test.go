package secret_test

import (
	"strings"
	"testing"

	"github.com/guideway-dev/guideway/internal/contexts/secret"
)

// credentialExamples returns fake credentials in the formats of their issuers.
func credentialExamples() map[string]string {
	n := func(count int) string { return strings.Repeat("a1B2c3D4", count/8+1)[:count] }
	hex := func(count int) string { return strings.Repeat("0a1b2c3d", count/8+1)[:count] }
	return map[string]string{
		"AWS key":             "AKIA" + strings.Repeat("Q2", 8),
		"AWS session key":     "ASIA" + strings.Repeat("Q2", 8),
		"GitHub":              "ghp_" + n(36),
		"GitHub app":          "ghs_" + n(36),
		"GitHub fine":         "github_pat_" + n(82),
		"GitLab":              "glpat-" + n(20),
		"GitLab runner":       "glrt-" + n(20),
		"Slack bot":           "xoxb-" + strings.Repeat("1", 12) + "-" + n(24),
		"Slack app":           "xapp-1-" + n(40),
		"OpenAI, old format":  "sk-" + n(48),
		"OpenAI":              "sk-proj-" + n(30) + "T3BlbkFJ" + n(30),
		"Anthropic":           "sk-ant-api03-" + n(90),
		"OpenRouter":          "sk-or-v1-" + hex(64),
		"Groq":                "gsk_" + n(52),
		"xAI":                 "xai-" + n(80),
		"Google":              "AIza" + n(35),
		"Stripe":              "sk_live_" + n(24),
		"Stripe webhook":      "whsec_" + n(32),
		"npm":                 "npm_" + n(36),
		"Docker":              "dckr_pat_" + n(27),
		"Shopify":             "shpat_" + hex(32),
		"signed token":        "eyJ" + n(20) + ".eyJ" + n(40) + "." + n(43),
		"encrypted token":     "eyJ" + n(20) + ".." + n(16) + "." + n(40) + "." + n(22),
		"private key":         "-----BEGIN OPENSSH PRIVATE KEY-----\n" + n(64) + "\n-----END OPENSSH PRIVATE KEY-----",
		"private RSA key":     "-----BEGIN RSA PRIVATE KEY-----\n" + n(64),
		"in a URL":            "postgres://ann:" + n(12) + "@db.example.com/x",
		"in a header":         "Authorization: Bearer " + n(30),
		"a setting":           "AWS_SECRET_ACCESS_KEY=" + n(40),
		"a setting in quotes": `api_key: "` + n(20) + `"`,
		"Guideway":            "gdw_" + n(43),
		"Guideway by name":    "gdn_a_" + n(40),
		"in a query":          "https://example.com/x?access_token=" + n(20) + "&y=1",
	}
}

// TestKnownFormatsAreRedacted checks that credentials of known formats are redacted at any
// position, even several in a row, and that the text around them is unchanged.
func TestKnownFormatsAreRedacted(t *testing.T) {
	t.Parallel()
	s := secret.NewScanner()
	for name, text := range credentialExamples() {
		// A part of the credential, without its prefix.
		core := text[len(text)-len(text)/3:]
		for _, around := range [][2]string{{"", ""}, {"use ", " for it"}, {`{"x":"`, `"}`}, {text + " ", ""}, {text + ",", "\nend"}} {
			got, found := s.Redact(around[0] + text + around[1])
			if !found || strings.Contains(got, core) && !strings.HasPrefix(name, "in a") || strings.Contains(got, "a1B2c3D4a1B") {
				t.Errorf("%s within %q and %q leaves %q", name, around[0], around[1], got)
			}
		}
	}
}

// TestNamedSecretsAreHidden checks that credentials of unknown formats are detected by the
// text before them: in settings, headers, command lines and URLs. It also checks which keys
// name a secret.
func TestNamedSecretsAreHidden(t *testing.T) {
	t.Parallel()
	s := secret.NewScanner()
	const value, long = "hunter2", "hunter2a1B2c3D4a1B2c3D4a1B2c3D4"
	for _, text := range []string{
		"password: " + value, `the password="` + value + `" is old`, "PASSWORD=" + value, "passphrase => " + value, "--password=" + value,
		"<password>" + value + "</password>", "<ns:api-key>" + value + "</ns:api-key>", "Server=db;User=sa;Pwd=" + value + ";Encrypt=true",
		"Endpoint=sb://x;SharedAccessKey=" + long + "=", "Cookie: sid=" + value + "; theme=dark", "Set-Cookie: sid=" + value + "; Path=/",
		"Authorization: token " + long, "authorization: ApiKey " + long, "curl -H 'Bearer " + long + "'", "curl -u admin:" + value + " https://x",
		"https://a.blob.core.windows.net/c?sv=1&sig=" + long + "%3D", "https://b.s3.amazonaws.com/k?X-Amz-Signature=" + long,
		"https://maps.example/api?key=" + long, "Private-Lines: 14\n" + long,
	} {
		if got, found := s.Redact(text); !found || strings.Contains(got, value) {
			t.Errorf("%q was redacted to %q", text, got)
		}
	}
	for key, hidden := range map[string]bool{
		"otp": true, "card_number": true, "connectionString": true, "db_pass": true, "passcode": true, "cvv": true,
		"signature": false, "max_tokens": false, "pinned": false, "discard": false, "key": false,
	} {
		if secret.NamesSecret(key) != hidden {
			t.Errorf("%s names a secret: want %v", key, hidden)
		}
	}
}

// TestWordsAreLeftAlone checks that words that resemble credentials are not redacted.
func TestWordsAreLeftAlone(t *testing.T) {
	t.Parallel()
	s := secret.NewScanner()
	for _, text := range []string{
		"unexpected token: identifier", "the next_token is required", "sk-learn and sk-lists", "apiKey: getApiKeyFromEnvironment",
		"token = ${env:TOKEN_1234567}", "password: <your password 12345678>", "max_tokens: 4096", "tokens=100000", "a task-1234567890123456789012345678901234567890",
		"-----BEGIN CERTIFICATE-----", "https://example.com/?page=123456789012345", "secret: changeme-changeme1", "globs in glass",
		"a bearer of bad news that came late", "the keyword: value", "docker run -u 1000:1000 image", "?key=name&sort=asc", "1.2.3 and N.B. this",
		"cookie: yes", "authorization is wanted", "git log --user ann",
	} {
		if got, found := s.Redact(text); found {
			t.Errorf("%q became %q", text, got)
		}
	}
}

// TestRedactedTextIsExact checks the exact text that Redact returns.
func TestRedactedTextIsExact(t *testing.T) {
	t.Parallel()
	s := secret.NewScanner()
	key, token := strings.Repeat("a1B2c3D4", 11)[:86]+"==", credentialExamples()["GitHub"]
	for text, want := range map[string]string{
		"AccountKey=" + key + " is old":            "[redacted: azure-key] is old",
		"Authorization: Basic " + key:              "[redacted: authorization]",
		"(" + token + "), then":                    "([redacted: github-token]), then",
		"a " + token + "é":                         "a [redacted: github-token]é",
		token:                                      "[redacted: github-token]",
		"git@x " + token + "\n" + token + "\n":     "git@x [redacted: github-token]\n[redacted: github-token]\n",
		"postgres://ann:hunter2@db.example.com/x?": "[redacted: url-password]b.example.com/x?",
	} {
		if got, found := s.Redact(text); !found || got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}
