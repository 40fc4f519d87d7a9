package secrets

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"strings"
)

// kind is a kind of lines: values, and the texts in which they occur at "§".
type kind struct {
	name      string
	value     func(*rand.Rand) string
	templates []string
}

const (
	lower    = "abcdefghijklmnopqrstuvwxyz"
	upper    = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	digit    = "0123456789"
	alphabet = lower + upper + digit
)

// chars returns a generator of a prefix and n random characters of a set.
func chars(prefix string, n int, of string) func(*rand.Rand) string {
	return func(r *rand.Rand) string {
		b := []byte(prefix)
		for range n {
			b = append(b, of[r.IntN(len(of))])
		}
		return string(b)
	}
}

// join returns a generator of the values of others, one after the other.
func join(parts ...func(*rand.Rand) string) func(*rand.Rand) string {
	return func(r *rand.Rand) string {
		var b strings.Builder
		for _, p := range parts {
			b.WriteString(p(r))
		}
		return b.String()
	}
}

// password returns a word with digits, as people choose it.
func password(r *rand.Rand) string {
	words := strings.Fields("hunter Sommer dragon Tr0ub4dor correcthorse Winter letmein Blumentopf shadow Geheim")
	signs := []string{"", "!", "#", "-", "&", "$"}
	return words[r.IntN(len(words))] + signs[r.IntN(len(signs))] + fmt.Sprint(r.IntN(9990)+10)
}

// addressPassword returns a password as it is written in an address.
func addressPassword(r *rand.Rand) string { return strings.ReplaceAll(password(r), "#", "%23") }

// plain are texts in which values of known formats occur.
func plain() []string {
	return []string{
		"§", "use § for it", `{"x": "§"}`, "the client sent § and got 200", "- `§`", "export VALUE=§", "url?x=§&y=1", "Schlüssel: §",
		"found '§' in .env, moved it", "2026-01-05T10:00:00Z INFO login with §", "<value>§</value>", "config.set(\"a\", \"§\");",
	}
}

// credentials are the kinds with a secret.
func credentials() []kind {
	hex, token := digit+"abcdef", chars("", 40, alphabet)
	user := []string{"postgres://app:§@db.internal:5432/shop", "connect to mysql://root:§@10.0.0.4/x first", "amqp://svc:§@queue:5672"}
	return []kind{
		{"AWS access key", chars("AKIA", 16, upper+"234567"), plain()},
		{"GitHub token", chars("ghp_", 36, alphabet), plain()},
		{"GitLab token", chars("glpat-", 20, alphabet), plain()},
		{"Slack token", join(chars("xoxb-", 12, digit), chars("-", 24, alphabet)), plain()},
		{"Stripe key", chars("sk_live_", 24, alphabet), plain()},
		{"Google API key", chars("AIza", 35, alphabet), plain()},
		{"Anthropic key", chars("sk-ant-api03-", 90, alphabet), plain()},
		{"OpenAI key", join(chars("sk-proj-", 40, alphabet), chars("T3BlbkFJ", 40, alphabet)), plain()},
		{"Hugging Face token", chars("hf_", 34, lower+upper), plain()},
		{"npm token", chars("npm_", 36, alphabet), plain()},
		{"JSON web token", join(chars("eyJ", 30, alphabet), chars(".eyJ", 60, alphabet), chars(".", 43, alphabet)), plain()},
		{"private key", chars("-----BEGIN PRIVATE KEY-----\n", 64, alphabet), []string{"§\n-----END PRIVATE KEY-----", "key.pem:\n§\n-----END PRIVATE KEY-----\nend"}},
		{"password in an address", addressPassword, user},
		{"authorization header", token, []string{"Authorization: Bearer §", `-H "Authorization: Bearer §"`, `"authorization": "Basic §"`, "authorization=bearer §"}},
		{"named token", token, []string{
			"export API_TOKEN=§", "X-Api-Key: §", "aws_secret_access_key = §", `the body was {"client_secret": "§", "scope": "all"}`, "STRIPE_KEY=§", "token: §",
			`logged {\"access_token\":\"§\"}`, "set DEPLOY_TOKEN to nothing; old: DEPLOY_TOKEN=§", "webhook_secret: '§'", "GITEA_TOKEN=§ ./deploy.sh", "const apiKey = \"§\";", "secretAccessKey: §",
		}},
		{"named hexadecimal token", chars("", 40, hex), []string{"API_KEY=§", "x-auth-token: §", "SONAR_TOKEN=§", `api_key="§"`, "DATADOG_API_KEY: §", "secret = §", "ENCRYPTION_KEY=§"}},
		{"token in prose", chars("", 32, alphabet), []string{
			"the API key is §", "The access token is §.", "our secret is: §", "der API-Schlüssel lautet §", "Das Token ist §", "I noted that the API token was § until May",
		}},
		{"assigned password", password, []string{
			"password: §", "DB_PASSWORD=§", "passwd=§", `"password": "§",`, "Passwort: §", "pw: §", "db.pass=§", "--password=§", "spring.datasource.password=§", "Server=db;Uid=sa;Pwd=§;", "REDIS_PASS=§", "passphrase => §",
		}},
		{"password in prose", password, []string{
			"the admin password is §", "The password for the staging server is §", "Das Admin-Passwort ist §", "das Kennwort lautet §", "root's password was §, changed today", "password of the test user is §",
			"Das Passwort für den Server lautet §", "the passphrase is \"§\"",
		}},
		{"basic authentication", password, []string{"curl -u ann:§ https://api.example.com", "curl -sS https://api.example.com/x --user 'svc:§'", "curl --proxy-user \"a:§\" http://x"}},
		{"session cookie", chars("", 32, alphabet), []string{"Cookie: session=§", "Set-Cookie: sid=§; Path=/; HttpOnly", "cookie: theme=dark; auth_token=§", `-H "Cookie: sessionid=§"`, "Cookie: PHPSESSID=§"}},
	}
}

// uuid returns a UUID of version 4.
func uuid(r *rand.Rand) string {
	return fmt.Sprintf("%08x-%04x-4%03x-a%03x-%012x", r.Uint32(), r.IntN(1<<16), r.IntN(1<<12), r.IntN(1<<12), r.Int64N(1<<48))
}

// encoded returns a text or random bytes in base64.
func encoded(r *rand.Rand) string {
	b := make([]byte, 20+r.IntN(60))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return base64.StdEncoding.EncodeToString(b)
}

// innocents are the kinds without a secret.
func innocents() []kind {
	hex := digit + "abcdef"
	hashes := []string{
		"§", "commit §", "sha256:§", "etag: \"§\"", "checksum = §", "merge § into main", "digest: §", "image@sha256:§", "cache key: §", "CACHE_KEY=§", "fingerprint § is known", "password hash §", "the hash of the token: §",
		"parent §, author ann", "md5 (release.tar.gz) = §", "idempotency-key: §", "tree § passes", "content-hash: §", "next_page_token: §",
	}
	none := func(*rand.Rand) string { return "" }
	number := func(r *rand.Rand) string { return fmt.Sprint(r.IntN(1 << 30)) }
	return []kind{
		{"SHA-1", chars("", 40, hex), hashes},
		{"SHA-256", chars("", 64, hex), hashes},
		{"MD5", chars("", 32, hex), hashes},
		{"UUID", uuid, []string{
			"§", "id: §", "request § failed", `{"id": "§"}`, "Idempotency-Key: §", "run § is finished", "GET /v1/users/§", "correlation-id=§", "tenant § (new)", "primary_key=§", "session § expired", "the token's id is §", "token: §", "secret_id: §",
		}},
		{"base64", encoded, []string{
			"§", "data:image/png;base64,§", "body: §", `{"content": "§", "encoding": "base64"}`, "Content-MD5: §", "integrity=\"sha512-§\"", "public key: §", "ssh-ed25519 § ann@host", "cursor=§", "nextPageToken: §", "payload § decoded",
		}},
		{"id", chars("01JC", 22, digit+"ABCDEFGHJKMNPQRSTVWXYZ"), []string{"§", "run r_§", "c_§ has two branches", "ticket: §", "message-id: <§.mail>", "pod web-§ restarted", "key: §", "order § paid", "trace §", "handle = §"}},
		{"number", number, []string{"max_tokens: §", "tokens=§", "port §", "password attempts: §", "token count is §", "secret version §", "api_key_id: §", "pin § the version", "timeout=§ms", "the key is in row §"}},
		{"prose", none, []string{
			"the password is required for every login", "The token is refreshed when it expires.", "secrets are stored in the vault", "das Passwort ist zu kurz", "the API key is missing from the request", "The password is correct!",
			"rotate the signing key each month", "a session cookie is set after login", "the password is base64-encoded", "pass: all 12 tests", "the secret is that nobody reads it", "Kennwort vergessen?", "the access token is a JWT signed with RS256",
			"the private key is stored in /etc/ssl/private", "curl -u takes a name", "bearer tokens are sent in a header", "the credential is read from the keychain", "use a passphrase of six words",
		}},
		{"date, version or count", number, []string{
			"2026-01-05T10:00:00.123456789Z", "1767607200123456789", "v1.22.333.4444", "10.20.30.40:5432", "§-§", "+§ -§", "@@ -12,7 +12,9 @@", "pages 100-200", "2026-01-05 to 2026-02-06", "git@github.com:acme/app.git", "user@host:~/src", "ISBN 978-3-16-148410-0",
			"node@20.11.1", "@types/node@20", "me@example.com", "4111 rows, 1111 left, 1111 new", "0.1.2-00§", "build 4§",
		}},
		{"code", none, []string{
			"token := lexer.NextToken()", "password = os.environ[\"DB_PASSWORD\"]", "const apiKey = process.env.API_KEY", "if token == tokenTypeIdentifier {", "secret: ${{ secrets.DEPLOY_2 }}", "password: ${DB_PASSWORD}", "api_key: <your api key>",
			"token = getTokenV2(ctx)", "func checkPassword(password string) bool", "secretName: prod-database-2", "key: value", "password: z.string().min(8)", "access_token = response.data.access_token", "passwordField.setText(\"\")", "tokenizer=o200k_base", "SECRET_FILE=/run/secrets/db_2", "credentials: include",
		}},
	}
}
