package manage

import (
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/upstream"
)

// specOf says how an upstream of the configuration is reached.
func specOf(u config.Upstream) upstream.Spec {
	s := upstream.Spec{
		Name: u.Name, Command: u.Command, Args: u.Args, Dir: u.Dir, Env: u.Env,
		URL: u.URL, Transport: upstream.Transport(u.Transport), Headers: u.Headers, Bearer: u.Bearer,
		Protocol: u.Protocol, Timeout: time.Duration(u.Timeout), MaxTime: time.Duration(u.MaxTime),
	}
	if u.OAuth != nil {
		s.OAuth = &upstream.OAuth{
			TokenURL: u.OAuth.TokenURL, Issuer: u.OAuth.Issuer, ClientID: u.OAuth.ClientID, ClientSecret: u.OAuth.ClientSecret,
			Scopes: u.OAuth.Scopes, Resource: u.OAuth.Resource,
		}
	}
	return s
}

// Hidden stands for a secret that is not shown.
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

// hidden is a value as a person may be shown it: a reference as it is, all else
// hidden.
func hidden(text string) string {
	if text == "" || wholeReference().MatchString(text) {
		return text
	}
	return Hidden
}

// WithoutSecrets hides what looks like a secret in a command or an address.
func WithoutSecrets(text string) string { return secretInText().ReplaceAllString(text, "${1}"+Hidden) }

// LooksSecret tells whether the name of a variable or header is that of a secret.
func LooksSecret(name string) bool { return secretInText().MatchString(name + "=x") }

// hiddenArgs are arguments without what looks like a secret in them.
func hiddenArgs(args []string) []string {
	out := slices.Clone(args)
	for i, arg := range args {
		out[i] = WithoutSecrets(arg)
		if i > 0 && secretFlag().MatchString(args[i-1]) {
			out[i] = hidden(arg)
		}
	}
	return out
}

func hiddenTexts(texts map[string]string) map[string]string {
	out := maps.Clone(texts)
	for key, value := range out {
		out[key] = hidden(value)
	}
	return out
}

// WithoutSecret is an upstream as it may be shown.
func WithoutSecret(u config.Upstream) config.Upstream {
	u.Env, u.Headers, u.Bearer = hiddenTexts(u.Env), hiddenTexts(u.Headers), hidden(u.Bearer)
	u.Args, u.URL = hiddenArgs(u.Args), WithoutSecrets(u.URL)
	if u.OAuth != nil {
		copied := *u.OAuth
		copied.ClientSecret = hidden(copied.ClientSecret)
		u.OAuth = &copied
	}
	return u
}

// restored puts secrets back that a change has kept hidden. They stay with the
// server that they were for: a change of where it is needs them anew, so that
// nobody who may not see a secret has it sent to a place of his own.
func restored(next, now config.Upstream) (config.Upstream, error) {
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
		return next, guideway.Errorf(guideway.CodeInvalid, "the hidden secrets were for another server").
			WithFix("give them anew, or as ${env:NAME} or ${keychain:NAME}")
	}
	return next, refuseHidden(next)
}

// refuseHidden refuses what stands for a secret and is none.
func refuseHidden(u config.Upstream) error {
	texts := slices.Concat(u.Args, slices.Collect(maps.Values(u.Env)), slices.Collect(maps.Values(u.Headers)), []string{u.Bearer, u.URL})
	if u.OAuth != nil {
		texts = append(texts, u.OAuth.ClientSecret)
	}
	if slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, Hidden) }) {
		return guideway.Errorf(guideway.CodeInvalid, "%q stands for a secret that is not known here", Hidden).
			WithFix("give the secret, or ${env:NAME} or ${keychain:NAME}")
	}
	return nil
}

// sameServer tells whether two upstreams are one server: the same program with the
// same arguments, or the same host.
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
