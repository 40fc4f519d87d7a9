// Package secrettest contains the cases of the detector of secrets. The tests of all that
// use it run them: the warnings of checkpoints, the request log and the hooks of the gateway.
package secrettest

import (
	"slices"
	"strings"
)

// Case is a text with or without a credential.
type Case struct {
	Text string
	// Redacted is the text with "[redacted]" in place of each credential.
	Redacted string
	// Warned reports whether a checkpoint with the text has a warning. A warning needs more
	// certainty than redaction.
	Warned bool
}

// Cases returns all cases.
func Cases() []Case { return slices.Concat(Formats(), named(), words()) }

// Formats returns fake credentials in the formats of their issuers, which are recognized
// without the text around them.
func Formats() []Case {
	n := func(count int) string { return strings.Repeat("a1B2c3D4", count/8+1)[:count] }
	hex := func(count int) string { return strings.Repeat("0a1b2c3d", count/8+1)[:count] }
	var list []Case
	for _, text := range []string{
		"AKIA" + strings.Repeat("Q2", 8),
		"ASIA" + strings.Repeat("Q2", 8),
		"ghp_" + n(36),
		"ghs_" + n(36),
		"github_pat_" + n(82),
		"glpat-" + n(20),
		"glrt-" + n(20),
		"xoxb-" + strings.Repeat("1", 12) + "-" + n(24),
		"xapp-1-" + n(40),
		"sk-" + n(48),
		"sk-proj-" + n(30) + "T3BlbkFJ" + n(30),
		"sk-ant-api03-" + n(90),
		"sk-or-v1-" + hex(64),
		"gsk_" + n(52),
		"xai-" + n(80),
		"AIza" + n(35),
		"whsec_" + n(32),
		"npm_" + n(36),
		"dckr_pat_" + n(27),
		"shpat_" + hex(32),
		"eyJ" + n(20) + ".eyJ" + n(40) + "." + n(43),
		"eyJ" + n(20) + ".." + n(16) + "." + n(40) + "." + n(22),
		"-----BEGIN OPENSSH PRIVATE KEY-----\n" + n(64) + "\n-----END OPENSSH PRIVATE KEY-----",
		"gdw_" + n(43),
		"gdn_a_" + n(40),
	} {
		list = append(list, Case{text, "[redacted]", true})
	}
	return list
}

// named returns texts with credentials that the text around them reveals.
func named() []Case {
	long := strings.Repeat("a1B2c3D4", 5)
	return []Case{
		{"a -----BEGIN RSA PRIVATE KEY-----\n" + long, "a [redacted]", true},
		{"-----BEGIN PRIVATE KEY-----\n" + long + "\n-----END PRIVATE KEY-----\nrest", "[redacted]\nrest", true},
		{"postgres://ann:hunter2@db.example.com/x?", "postgres://ann:[redacted]@db.example.com/x?", true},
		{"redis://:p@ss@host x", "redis://:[redacted]@host x", true},
		{"Authorization: Bearer " + long, "Authorization: Bearer [redacted]", true},
		{"Authorization: Basic " + long + "==", "Authorization: Basic [redacted]", true},
		{"authorization: ApiKey " + long, "authorization: [redacted]", false},
		{"Authorization: Bearer abc.def\nnext", "Authorization: [redacted]\nnext", false},
		{"curl -H 'Bearer " + long + "'", "curl -H 'Bearer [redacted]'", false},
		{"curl -u admin:hunter2 https://x", "curl -u admin:[redacted] https://x", false},
		{"AWS_SECRET_ACCESS_KEY=" + long, "AWS_SECRET_ACCESS_KEY=[redacted]", false},
		{`api_key: "` + long + `"`, `api_key: "[redacted]"`, false},
		{"the token: abcdefgh1234", "the token: [redacted]", false},
		{"password: hunter2", "password: [redacted]", false},
		{"password: hunter2222, then", "password: [redacted], then", true},
		{`the password="hunter2" is old`, `the password="[redacted]" is old`, false},
		{"DB_PASSWORD=hunter2hunter2 and more", "DB_PASSWORD=[redacted] and more", true},
		{"passphrase => hunter2", "passphrase => [redacted]", false},
		{"--password=hunter2", "--password=[redacted]", false},
		{"<ns:api-key>hunter2</ns:api-key>", "<ns:api-key>[redacted]</ns:api-key>", false},
		{"Server=db;User=sa;Pwd=hunter2;Encrypt=true", "Server=db;User=sa;Pwd=[redacted];Encrypt=true", false},
		{"Endpoint=sb://x;SharedAccessKey=" + long + "=", "Endpoint=sb://x;SharedAccessKey=[redacted]", false},
		{"Set-Cookie: sid=hunter2; Path=/", "Set-Cookie: sid=[redacted]", false},
		{"https://example.com/x?access_token=" + long + "&y=1", "https://example.com/x?access_token=[redacted]&y=1", false},
		{"https://a.example/c?sv=1&sig=" + long + "%3D", "https://a.example/c?sv=1&sig=[redacted]", false},
		{`{"user": "ann", "password": "a b", "n": 12345678901234567890}`, `{"n":12345678901234567890,"password":"[redacted]","user":"ann"}`, false},
		{`["x", {"secret": [1], "accessToken": "abc"}]`, `["x",{"accessToken":"[redacted]","secret":"[redacted]"}]`, false},
	}
}

// words returns texts that resemble credentials.
func words() []Case {
	var list []Case
	for _, text := range []string{
		"unexpected token: identifier", "the next_token is required", "sk-learn and sk-lists", "apiKey: getApiKeyFromEnvironment",
		"token = ${env:TOKEN_1234567}", "password: <your password 12345678>", "max_tokens: 4096", "tokens=100000", "a task-1234567890123456789012345678901234567890",
		"-----BEGIN CERTIFICATE-----", "https://example.com/?page=123456789012345", "secret: changeme-changeme1", "globs in glass",
		"a bearer of bad news that came late", "the keyword: value", "docker run -u 1000:1000 image", "?key=name&sort=asc", "1.2.3 and N.B. this",
		"cookie: yes", "authorization is wanted", "git log --user ann", "postgres://ann:${PASSWORD}@db postgres://ann:***@db",
		"https://host:8080/a@b mailto:a@b ssh://me@host https://h:8080?x=a@b", "nextPageToken=abcdef0123456789",
		`{"nextPageToken": "abcdef0123456789", "next_token": "abcdef0123456789", "signature": "x"}`, `{"broken": `,
	} {
		list = append(list, Case{text, text, false})
	}
	return list
}
