package admin

import (
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/config"
)

// Hidden replaces a secret that is not shown.
const Hidden = "(hidden)"

var (
	wholeReference = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(Bearer )?\$\{(env|keychain):[^}]*\}$`) })
	secretInText   = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)((?:key|token|secret|password|passwd|auth)[a-z_-]*[= ])[^ &]+`)
	})
	secretFlag = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)^--?[a-z_-]*(?:key|token|secret|password|passwd|auth)[a-z_-]*$`)
	})
)

// hideValue returns a value to show to a person: a reference unchanged, anything else
// hidden.
func hideValue(text string) string {
	if text == "" || wholeReference().MatchString(text) {
		return text
	}
	return Hidden
}

// WithoutSecrets hides likely secrets in a command or a URL.
func WithoutSecrets(text string) string { return secretInText().ReplaceAllString(text, "${1}"+Hidden) }

// LooksSecret reports whether a variable or header with this name likely holds a secret.
func LooksSecret(name string) bool { return secretInText().MatchString(name + "=x") }

// hideArgs returns arguments with likely secrets hidden.
func hideArgs(args []string) []string {
	out := slices.Clone(args)
	for i, arg := range args {
		out[i] = WithoutSecrets(arg)
		if i > 0 && secretFlag().MatchString(args[i-1]) {
			out[i] = hideValue(arg)
		}
	}
	return out
}

func hiddenTexts(texts map[string]string) map[string]string {
	out := maps.Clone(texts)
	for key, value := range out {
		out[key] = hideValue(value)
	}
	return out
}

// WithoutSecret returns an upstream with its secrets hidden.
func WithoutSecret(u config.Upstream) config.Upstream {
	u.Env, u.Headers, u.Bearer = hiddenTexts(u.Env), hiddenTexts(u.Headers), hideValue(u.Bearer)
	u.Args, u.URL = hideArgs(u.Args), WithoutSecrets(u.URL)
	if u.OAuth != nil {
		copied := *u.OAuth
		copied.ClientSecret = hideValue(copied.ClientSecret)
		u.OAuth = &copied
	}
	return u
}

// restoreSecrets restores the secrets that a change left hidden. If the change leads to
// another server (see sameServer), they must be entered again: otherwise a person who may
// not see a secret could have it sent to another server.
func restoreSecrets(next, now config.Upstream) (config.Upstream, error) {
	shown := WithoutSecret(now)
	if next.URL == shown.URL {
		next.URL = now.URL
	}
	kept := false
	keep := func(text, shown, now string) string {
		if text == shown && shown != now {
			kept = true
			return now
		}
		return text
	}
	next.Args = slices.Clone(next.Args)
	for i := range next.Args {
		if i < len(now.Args) {
			next.Args[i] = keep(next.Args[i], shown.Args[i], now.Args[i])
		}
	}
	next.Env, next.Headers = maps.Clone(next.Env), maps.Clone(next.Headers)
	for key := range next.Env {
		next.Env[key] = keep(next.Env[key], shown.Env[key], now.Env[key])
	}
	for key := range next.Headers {
		next.Headers[key] = keep(next.Headers[key], shown.Headers[key], now.Headers[key])
	}
	next.Bearer = keep(next.Bearer, shown.Bearer, now.Bearer)
	if next.OAuth != nil && now.OAuth != nil {
		copied := *next.OAuth
		copied.ClientSecret = keep(copied.ClientSecret, shown.OAuth.ClientSecret, now.OAuth.ClientSecret)
		next.OAuth = &copied
	}
	if kept && !sameServer(next, now) {
		return next, guideway.Errorf(guideway.CodeInvalid, "the change sets another command, argument, directory, host or authorization server, which must not receive the stored secrets").
			WithFix("enter the secrets again, or use ${env:NAME} or ${keychain:NAME}")
	}
	return next, refuseHidden(next)
}

// refuseHidden returns an error if an upstream has a placeholder without a stored secret.
func refuseHidden(u config.Upstream) error {
	texts := slices.Concat(u.Args, slices.Collect(maps.Values(u.Env)), slices.Collect(maps.Values(u.Headers)), []string{u.Bearer, u.URL})
	if u.OAuth != nil {
		texts = append(texts, u.OAuth.ClientSecret)
	}
	if slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, Hidden) }) {
		return guideway.Errorf(guideway.CodeInvalid, "%q is a placeholder, but no secret is stored for it", Hidden).
			WithFix("enter the secret, or use ${env:NAME} or ${keychain:NAME}")
	}
	return nil
}

// sameServer reports whether two upstreams are the same server: the same program with the
// same arguments in the same directory, the same host of the URL, and the same hosts for
// OAuth.
func sameServer(a, b config.Upstream) bool {
	return a.Command == b.Command && a.Dir == b.Dir && slices.Equal(a.Args, b.Args) && hostOf(a.URL) == hostOf(b.URL) && tokenHost(a) == tokenHost(b)
}

func tokenHost(u config.Upstream) string {
	if u.OAuth == nil {
		return ""
	}
	return hostOf(u.OAuth.TokenURL) + " " + hostOf(u.OAuth.Issuer)
}

func hostOf(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return text
	}
	return u.Scheme + "://" + u.Host
}
