package upstream

import (
	"maps"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/guideway-dev/guideway"
)

// Secrets looks up what references stand for.
type Secrets struct {
	// Getenv looks up a variable; nil means os.Getenv.
	Getenv func(name string) string
	// Keychain looks up an entry of the system's keychain; nil means that there
	// is none.
	Keychain func(name string) (string, error)
}

var reference = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\$\{(env|keychain):([^}]*)\}`) })

// resolve puts secrets in the place of their references. The error names the
// reference and never a secret.
func (s Secrets) resolve(text string) (string, error) {
	var failed error
	out := reference().ReplaceAllStringFunc(text, func(ref string) string {
		parts := reference().FindStringSubmatch(ref)
		value, err := s.lookup(parts[1], parts[2])
		if err != nil && failed == nil {
			failed = err
		}
		return value
	})
	return out, failed
}

func (s Secrets) lookup(kind, name string) (string, error) {
	if kind == "keychain" {
		if s.Keychain == nil {
			return "", guideway.Errorf(guideway.CodeUnavailable, "${keychain:%s} cannot be looked up: there is no keychain", name).
				WithFix("use ${env:NAME}")
		}
		value, err := s.Keychain(name)
		if err != nil {
			return "", guideway.Errorf(guideway.CodeUnavailable, "look up ${keychain:%s}: %w", name, err).
				WithFix("put the secret into the system's keychain, service \"guideway\", account %q", name)
		}
		return value, nil
	}
	getenv := s.Getenv
	if getenv == nil {
		getenv = os.Getenv
	}
	value := getenv(name)
	if value == "" {
		return "", guideway.Errorf(guideway.CodeUnavailable, "the variable %s, which is referred to, is not set", name).
			WithFix("set %s in the environment of guideway", name)
	}
	return value, nil
}

// passed are the variables of ours that a program cannot do without. Nothing
// else of our environment reaches an upstream: it may hold other servers'
// secrets.
func passed() []string {
	names := []string{"HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER"}
	if runtime.GOOS == "windows" {
		names = append(names, "APPDATA", "COMSPEC", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATHEXT", "PROCESSOR_ARCHITECTURE",
			"PROGRAMFILES", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "TMP", "USERNAME", "USERPROFILE", "WINDIR")
	}
	return names
}

// environment is that of a process.
func (s Secrets) environment(spec Spec) ([]string, error) {
	getenv := s.Getenv
	if getenv == nil {
		getenv = os.Getenv
	}
	var env []string
	for _, name := range passed() {
		value := getenv(name)
		// A shell function that is exported is a program in a variable.
		if _, own := spec.Env[name]; value != "" && !own && !strings.HasPrefix(value, "()") {
			env = append(env, name+"="+value)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(spec.Env)) {
		value, err := s.resolve(spec.Env[name])
		if err != nil {
			return nil, err
		}
		env = append(env, name+"="+value)
	}
	return env, nil
}

// resolved is a spec with secrets in the places of references; env is the
// environment of its process.
func (s Secrets) resolved(spec Spec) (out Spec, env []string, err error) {
	each := func(texts ...*string) {
		for _, text := range texts {
			if err == nil {
				*text, err = s.resolve(*text)
			}
		}
	}
	out = spec
	out.Args = slices.Clone(spec.Args)
	for i := range out.Args {
		each(&out.Args[i])
	}
	out.Headers = maps.Clone(spec.Headers)
	for name, value := range out.Headers {
		each(&value)
		out.Headers[name] = value
	}
	each(&out.URL, &out.Bearer)
	if spec.OAuth != nil {
		copied := *spec.OAuth
		out.OAuth = &copied
		each(&copied.ClientID, &copied.ClientSecret)
	}
	if err != nil {
		return Spec{}, nil, err
	}
	if spec.Command != "" {
		env, err = s.environment(spec)
	}
	return out, env, err
}

// Check tells whether all that a spec refers to is there. The error names the reference.
func (s Secrets) Check(spec Spec) error {
	_, _, err := s.resolved(spec)
	return err
}

// Resolve puts secrets in the place of the references of a text; see resolve.
func (s Secrets) Resolve(text string) (string, error) { return s.resolve(text) }
