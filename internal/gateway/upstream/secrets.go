package upstream

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/zalando/go-keyring"
)

// Secrets resolves references to secrets.
type Secrets struct {
	// Getenv reads a variable; os.Getenv if nil.
	Getenv func(name string) string
	// Keychain reads an entry of the system's keychain; nil if there is no keychain.
	Keychain func(name string) (string, error)
}

var reference = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\$\{(env|keychain):([^}]*)\}`) })

// resolve replaces references with their secrets. Its errors contain the reference, but
// never a secret.
func (s Secrets) resolve(text string) (string, error) {
	var failed error
	out := reference().ReplaceAllStringFunc(text, func(ref string) string {
		parts := reference().FindStringSubmatch(ref)
		value, err := s.lookUp(parts[1], parts[2])
		if err != nil && failed == nil {
			failed = err
		}
		return value
	})
	return out, failed
}

func (s Secrets) lookUp(kind, name string) (string, error) {
	if kind == "keychain" {
		if s.Keychain == nil {
			return "", guideway.Errorf(guideway.CodeUnavailable, "${keychain:%s} cannot be read: there is no keychain", name).
				WithFix("use ${env:NAME} instead")
		}
		value, err := s.Keychain(name)
		if err != nil {
			return "", guideway.Errorf(guideway.CodeUnavailable, "read ${keychain:%s}: %w", name, err).
				WithFix("unlock the system's keychain; if the secret is not stored there, add it with the service \"guideway\" and the account %q", name)
		}
		return trimLineEnds(value), nil
	}
	getenv := s.Getenv
	if getenv == nil {
		getenv = os.Getenv
	}
	value := trimLineEnds(getenv(name))
	if value == "" {
		return "", guideway.Errorf(guideway.CodeUnavailable, "the environment variable %s is not set or is empty", name).
			WithFix("set %s in the environment of guideway", name)
	}
	return value, nil
}

// trimLineEnds removes the line breaks at the end of a secret, which files and programs often
// add.
func trimLineEnds(value string) string { return strings.TrimRight(value, "\r\n") }

// inheritedVars returns the environment variables that programs cannot work without. An
// upstream inherits no others, because they may hold other servers' secrets.
func inheritedVars() []string {
	names := []string{"HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER"}
	if runtime.GOOS == "windows" {
		names = append(names, "APPDATA", "COMSPEC", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATHEXT", "PROCESSOR_ARCHITECTURE",
			"PROGRAMFILES", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "TMP", "USERNAME", "USERPROFILE", "WINDIR")
	}
	return names
}

// environment returns the environment of a process.
func (s Secrets) environment(spec Spec) ([]string, error) {
	getenv := s.Getenv
	if getenv == nil {
		getenv = os.Getenv
	}
	var env []string
	for _, name := range inheritedVars() {
		value := getenv(name)
		// The value of an exported shell function is a program.
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

// resolveSpec returns a spec with its references replaced; env is the environment of its
// process.
func (s Secrets) resolveSpec(spec Spec) (out Spec, env []string, err error) {
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
	if err == nil {
		err = checkURL("url", out.URL)
	}
	if err != nil {
		return Spec{}, nil, err
	}
	if spec.Command != "" {
		env, err = s.environment(spec)
	}
	return out, env, err
}

// Check returns an error if a reference of a spec cannot be resolved. The error names the
// reference.
func (s Secrets) Check(spec Spec) error {
	_, _, err := s.resolveSpec(spec)
	return err
}

// Resolve replaces the references in a text; see resolve.
func (s Secrets) Resolve(text string) (string, error) { return s.resolve(text) }

// keychainService is the keychain service of upstreams' secrets.
const keychainService = "guideway"

// keychainTime limits the wait, because a locked keychain may prompt a person who is
// absent.
const keychainTime = 10 * time.Second

// Keychain reads a secret from the system's keychain.
func Keychain(name string) (string, error) {
	type found struct {
		value string
		err   error
	}
	done := make(chan found, 1)
	go func() {
		value, err := keyring.Get(keychainService, name)
		done <- found{value, err}
	}()
	timer := time.NewTimer(keychainTime)
	defer timer.Stop()
	select {
	case f := <-done:
		return f.value, f.err
	case <-timer.C:
		return "", fmt.Errorf("the keychain did not answer within %s", keychainTime)
	}
}
