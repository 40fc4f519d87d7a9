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
func Cases() []Case { return slices.Concat(Formats(), named(), assigned(), words(), public()) }

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
		{"curl -u admin:hunter2 https://x", "curl -u admin:[redacted] https://x", true},
		{"AWS_SECRET_ACCESS_KEY=" + long, "AWS_SECRET_ACCESS_KEY=[redacted]", true},
		{`api_key: "` + long + `"`, `api_key: "[redacted]"`, true},
		{"the token: abcdefgh1234", "the token: [redacted]", false},
		{"password: hunter2", "password: [redacted]", true},
		{"password: hunter2222, then", "password: [redacted], then", true},
		{`the password="hunter2" is old`, `the password="[redacted]" is old`, true},
		{"DB_PASSWORD=hunter2hunter2 and more", "DB_PASSWORD=[redacted] and more", true},
		{"passphrase => hunter2", "passphrase => [redacted]", true},
		{"--password=hunter2", "--password=[redacted]", true},
		{"<ns:api-key>hunter2</ns:api-key>", "<ns:api-key>[redacted]</ns:api-key>", false},
		{"Server=db;User=sa;Pwd=hunter2;Encrypt=true", "Server=db;User=sa;Pwd=[redacted];Encrypt=true", true},
		{"Endpoint=sb://x;SharedAccessKey=" + long + "=", "Endpoint=sb://x;SharedAccessKey=[redacted]", true},
		{"Set-Cookie: sid=hunter2; Path=/", "Set-Cookie: sid=[redacted]", false},
		{"https://example.com/x?access_token=" + long + "&y=1", "https://example.com/x?access_token=[redacted]&y=1", true},
		{"https://a.example/c?sv=1&sig=" + long + "%3D", "https://a.example/c?sv=1&sig=[redacted]", false},
		{`{"user": "ann", "password": "a b", "n": 12345678901234567890}`, `{"n":12345678901234567890,"password":"[redacted]","user":"ann"}`, false},
		{`["x", {"secret": [1], "accessToken": "abc"}]`, `["x",{"accessToken":"[redacted]","secret":"[redacted]"}]`, false},
		{"the hash of the token: 9f86d081884c7d659a2feaa0c55ad015", "the hash of the token: [redacted]", false},
		{"API_TOKEN=q7Lx0RnullZ4mWt9Kd2VhYs", "API_TOKEN=[redacted]", true},
		{"mysql://root:Winter$3751@db.example.com/x", "mysql://root:[redacted]@db.example.com/x", true},
		{"secretName: prod-db-2024", "secretName: [redacted]", false},
		{"token = base64EncodeV2(x)", "token = [redacted](x)", false},
		{"const token = utf8DecodeString2", "const token = [redacted]", false},
		{"apiKey: config.providers.openai2.key", "apiKey: [redacted]", false},
		{"password_hash: 9f86d081884c7d659a2feaa0c55ad015", "password_hash: [redacted]", false},
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

// assigned returns texts in which a name and the shape of its value reveal a credential.
func assigned() []Case {
	const random, hex = "q7Lx0RbZ4mWt9Kd2VhYs", "9f86d081884c7d659a2feaa0c55ad015"
	var list []Case
	for _, text := range []string{
		"export API_TOKEN=" + random, "X-Api-Key: " + hex, "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYzQ81Lw0TkA", "STRIPE_KEY=" + random,
		`the text {\"client_secret\": \"` + random + `\"} was sent`, "token := `" + random + "`", "the API key is " + random, "the access token is: " + random,
		"der API-Schlüssel lautet " + random, "SESSION_TOKEN: '" + random + "'", "db.pass=Tr0ub4dor", "pw: hunter2", "the admin password is hunter2",
		"The password for the staging server is Sommer2024", "das Admin-Passwort ist Winter!2025", "Das Kennwort lautet gEh3im99", "Passwort: gEh3im99",
		"curl -sS -u ann:hunter2 https://x", "curl https://x --user 'ann:horse9'", "Cookie: session=" + random, "Cookie: theme=dark; sid=" + hex,
	} {
		value := text
		for _, v := range []string{random, hex, "wJalrXUtnFEMI/K7MDENG/bPxRfiCYzQ81Lw0TkA", "Tr0ub4dor", "hunter2", "horse9", "Sommer2024", "Winter!2025", "gEh3im99"} {
			value = strings.ReplaceAll(value, v, "[redacted]")
		}
		if strings.HasPrefix(text, "Cookie: theme=") { // a header is hidden to its end
			value = "Cookie: theme=[redacted]"
		}
		list = append(list, Case{text, value, true})
	}
	return list
}

// public returns texts with values that look random and are no credentials: digests, UUIDs,
// encoded texts and identifiers.
func public() []Case {
	const (
		uuid   = "550e8400-e29b-41d4-a716-446655440000"
		sha1   = "da39a3ee5e6b4b0d3255bfef95601890afd80709"
		sha256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
		base64 = "VGhlIHF1aWNrIGJyb3duIGZveCBqdW1wcyBvdmVyIDEzIGxhenkgZG9ncw=="
	)
	var list []Case
	for _, text := range []string{
		uuid, sha1, sha256, base64, "commit " + sha1, "sha256:" + sha256, "etag: " + sha1, "id=" + uuid, "digest=" + sha256, `"integrity": "sha512-` + base64 + `"`,
		"data:image/png;base64," + base64, "run_id: r_01JC3Z8Q4W5X6Y7Z8A9B0C1D2E", "Idempotency-Key: " + uuid, "CACHE_KEY=" + sha1, "cacheKey: " + sha256, "public key: " + base64,
		"public_key=" + base64, "primary_key: " + uuid, "s3_object_key = backups/2024/12/" + sha1, "trace-id: 4bf92f3577b34da6a3ce929d0e0e4736",
		"the next page token is " + sha1, "the password is required", "The password is correct!", "the password is base64-encoded", "the password is argon2id-hashed", "the password is 12-characters-long",
		"the password is **mandatory**", "das Passwort ist falsch", "das Passwort ist zu kurz", "the token is a UUID of version 4", "The secret is stored in vault-2", "token: string",
		"API_KEY=process.env.S3_KEY_2", "the key is ABC-1234", "ISSUE_KEY=GW-1234-56789", "curl -u https://example.com", "Cookie: theme=dark1",
		"pass: 12/12", "all_pass=true", "keyboard: de-latin1-nodeadkeys", "the session is over", "monkey: banana12345678", "Keynote 2024: https://example.com/2024", "commit token.go 1234567890abc",
	} {
		list = append(list, Case{text, text, false})
	}
	return list
}
