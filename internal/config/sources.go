package config

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/guideway-dev/guideway"
)

// Source is a repository or a registry of definitions.
type Source struct {
	Name string `json:"-"`

	// Git is the URL of a repository, and Registry is the URL of a registry. Exactly one of
	// the two is set.
	Git      string `json:"git,omitempty"`
	Registry string `json:"registry,omitempty"`

	// Branch, Tag or Commit selects the version of a repository; by default it is the
	// repository's default branch. Path is the directory of the definitions in the
	// repository.
	Branch string `json:"branch,omitempty"`
	Tag    string `json:"tag,omitempty"`
	Commit string `json:"commit,omitempty"`
	Path   string `json:"path,omitempty"`

	// Token is the credential for https. It may refer to a secret, as "${env:NAME}" or
	// "${keychain:NAME}". User is the user name that is sent with Token.
	Token string `json:"token,omitempty"`
	User  string `json:"user,omitempty"`
	// SSHKey and KnownHosts are paths of files.
	SSHKey     string `json:"sshKey,omitempty"`
	KnownHosts string `json:"knownHosts,omitempty"`

	// Interval is how often the source is polled. Nil means the setting
	// workflows.syncInterval.
	Interval *SourceTime `json:"interval,omitempty"`
	// Trust is trusted, review or blocked. Empty means review. The setting
	// workflows.trust takes precedence.
	Trust string `json:"trust,omitempty"`
	// AllowPrivate allows a registry at a private address.
	AllowPrivate bool `json:"allowPrivate,omitempty"`

	// MaxFiles, MaxFileSize and MaxBytes limit the fetched files. 0 is the default.
	MaxFiles    int   `json:"maxFiles,omitempty"`
	MaxFileSize int64 `json:"maxFileSize,omitempty"`
	MaxBytes    int64 `json:"maxBytes,omitempty"`

	Disabled bool `json:"disabled,omitempty"`

	// Origin is the place where the source is configured.
	Origin Origin `json:"-"`
}

// SourceTime is a duration such as "5m". "0s" means as often as possible.
type SourceTime time.Duration

// UnmarshalJSON implements json.Unmarshaler.
func (t *SourceTime) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return durationError(data, reflect.TypeFor[SourceTime]())
	}
	d, err := ParseDuration(text)
	if err != nil || d > maxSyncInterval {
		return durationError(data, reflect.TypeFor[SourceTime]())
	}
	*t = SourceTime(d)
	return nil
}

// MarshalJSON implements json.Marshaler.
func (t SourceTime) MarshalJSON() ([]byte, error) {
	return json.Marshal(DurationText(time.Duration(t)))
}

const maxSyncInterval = 30 * day

// The variables of sources that are not settings.
const (
	// EnvGitRepos lists repositories: URLs separated by commas, each with an optional
	// "#branch", or a JSON list of URLs and objects.
	EnvGitRepos = "GUIDEWAY_GIT_REPOS"
	// EnvRegistryURL is the URL of a registry.
	EnvRegistryURL = "GUIDEWAY_REGISTRY_URL"
	// EnvRegistryKey is the key for the registry of EnvRegistryURL.
	EnvRegistryKey = "GUIDEWAY_REGISTRY_KEY"
	// EnvRegistryPrivate allows a private address for the registry of EnvRegistryURL: true
	// or 1.
	EnvRegistryPrivate = "GUIDEWAY_REGISTRY_ALLOW_PRIVATE"
)

// trustLevels returns the levels of trust in a source.
func trustLevels() []string { return []string{"trusted", "review", "blocked"} }

func splitTrust(text string) (name, level string, f *settingError) {
	name, level, ok := strings.Cut(text, "=")
	if !ok || name == "" {
		return "", "", newError(`write NAME=LEVEL, such as "project=trusted"`, "%q is not NAME=LEVEL", text)
	}
	if !slices.Contains(trustLevels(), level) {
		return "", "", newError("use one of: "+strings.Join(trustLevels(), ", "), "%q is not a trust level", level)
	}
	return name, level, nil
}

func checkSourceHost(text string) *settingError {
	bare := strings.TrimPrefix(text, "http://")
	if f := checkHost(bare); f != nil {
		f.fix = `write a host or host:port, such as "git.example.com"`
		return f
	}
	return nil
}

// convertMinutes converts a duration in minutes.
func convertMinutes(text string) (string, *settingError) {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil || n < 0 || n > int64(maxSyncInterval/time.Minute) {
		return "", newError(`set minutes, such as 60, or use GUIDEWAY_SYNC_INTERVAL=1h`,
			"%q is not a number of minutes from 0 to %d", text, maxSyncInterval/time.Minute)
	}
	return (time.Duration(n) * time.Minute).String(), nil
}

var sourceName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,39}$`) })

// reservedName reports whether a name belongs to a built-in source.
func reservedName(name string) bool {
	return slices.Contains([]string{"bundled", "user", "plugins", "file", "project", "project-guideway", "project-root", "project-root-guideway", "custom"}, name) ||
		strings.HasPrefix(name, "custom-") || strings.HasPrefix(name, "npm-")
}

// readSources reads the sources of the file. Whether a source can be reached is checked
// when it is used.
func (f *fileReader) readSources(at int) {
	readEntries(f, at, "source", "source", `write an object of sources by their names, such as {"team": {"git": "https://…"}}`, func(name, _ string, origin Origin, s *Source) *settingError {
		s.Name, s.Origin = name, origin
		if invalid := s.validate(); invalid != nil {
			return invalid
		}
		f.config.Sources = append(f.config.Sources, *s)
		return nil
	})
}

// validate checks a source without reaching it.
func (s *Source) validate() *settingError {
	switch {
	case !sourceName().MatchString(s.Name):
		return newError("use at most 40 lower-case letters, digits, dots, dashes and underscores, with a letter or a digit first", "%q is not a valid source name", s.Name)
	case reservedName(s.Name):
		return newError("choose another name", "%q is reserved for a built-in source", s.Name)
	case s.Git == "" && s.Registry == "":
		return newError(`add "git" or "registry"`, "the source %q needs the URL of a repository or of a registry", s.Name)
	case s.Git != "" && s.Registry != "":
		return newError(`remove "git" or "registry"`, "the source %q is both a repository and a registry", s.Name)
	case s.Registry != "" && s.Branch+s.Tag+s.Commit+s.Path+s.SSHKey+s.KnownHosts != "":
		return newError(`remove "branch", "tag", "commit", "path", "sshKey" and "knownHosts"`, "the source %q is a registry, but has settings of a repository", s.Name)
	case s.Trust != "" && !slices.Contains(trustLevels(), s.Trust):
		return newError("use one of: "+strings.Join(trustLevels(), ", "), "the source %q has the unknown trust level %q", s.Name, s.Trust)
	case s.MaxFiles < 0 || s.MaxFileSize < 0 || s.MaxBytes < 0:
		return newError("write a positive number, or remove the limit to use the default", `the source %q has a negative limit: "maxFiles" is %d, "maxFileSize" is %d and "maxBytes" is %d`, s.Name, s.MaxFiles, s.MaxFileSize, s.MaxBytes)
	}
	return nil
}

// readSourceVariables adds the sources that variables define to the sources of the file.
func (l *loader) readSourceVariables() {
	if name, text := l.firstSet(EnvGitRepos, "WORKFLOW_GIT_REPOS"); text != "" {
		l.readRepositories(name, text)
	} else if text := l.opts.Getenv("WORKFLOW_GIT_REPO_URL"); text != "" {
		l.addSource(Source{Git: text, Branch: l.opts.Getenv("WORKFLOW_GIT_REPO_BRANCH"), Origin: Origin{OriginEnv, "WORKFLOW_GIT_REPO_URL"}})
	}
	if name, text := l.firstSet(EnvRegistryURL, "WORKFLOW_REGISTRY_URL"); text != "" {
		_, key := l.firstSet(EnvRegistryKey, "WORKFLOW_REGISTRY_API_KEY")
		private, _ := convertSwitch(l.opts.Getenv(EnvRegistryPrivate))
		l.addSource(Source{Registry: text, Token: key, AllowPrivate: private == "true", Origin: Origin{OriginEnv, name}})
	}
}

// firstSet returns the first variable in names that is set.
func (l *loader) firstSet(names ...string) (name, text string) {
	for _, name := range names {
		if text := strings.TrimSpace(l.opts.Getenv(name)); text != "" {
			return name, text
		}
	}
	return "", ""
}

// readRepositories parses a list of repositories: JSON, or URLs separated by commas. Its
// errors do not contain the text, which may contain a token.
func (l *loader) readRepositories(name, text string) {
	if !strings.HasPrefix(text, "[") && !strings.HasPrefix(text, "{") {
		for _, address := range splitCommas(text) {
			url, branch := address, ""
			if i := strings.LastIndexByte(address, '#'); i > 0 {
				url, branch = address[:i], address[i+1:]
			}
			l.addSource(Source{Git: url, Branch: branch, Origin: Origin{OriginEnv, name}})
		}
		return
	}
	if strings.HasPrefix(text, "{") {
		text = "[" + text + "]"
	}
	const fix = `write a list such as [{"repositoryUrl": "https://github.com/acme/workflows", "branch": "main"}], or comma-separated URLs`
	var items []json.RawMessage
	if json.Unmarshal([]byte(text), &items) != nil {
		l.reportError(guideway.Diagnostic{File: name}, newError(fix, "the value is not a JSON list"))
		return
	}
	for i, item := range items {
		s, invalid := readRepository(item)
		if invalid != nil {
			invalid.message = fmt.Sprintf("element %d: %s", i+1, invalid.message)
			l.reportError(guideway.Diagnostic{File: name}, invalid)
			continue
		}
		s.Origin = Origin{OriginEnv, name}
		l.addSource(s)
	}
}

// repository is an element of a JSON list of repositories in the form of the other system.
type repository struct {
	URL         string   `json:"repositoryUrl"`
	Branch      string   `json:"branch"`
	SyncMinutes *float64 `json:"syncInterval"`
	AuthToken   string   `json:"authToken"`
	MaxFiles    int      `json:"maxFiles"`
	MaxFileSize int64    `json:"maxFileSize"`
	// LocalPath is the clone's directory in the other system. Guideway ignores it.
	LocalPath string `json:"localPath"`
}

// readRepository parses one element: a text, or an object in the form of Guideway or of the
// other system.
func readRepository(item json.RawMessage) (Source, *settingError) {
	var url string
	if json.Unmarshal(item, &url) == nil {
		return Source{Git: url}, nil
	}
	var r repository
	if json.Unmarshal(item, &r) == nil && r.URL != "" {
		s := Source{Git: r.URL, Branch: r.Branch, Token: r.AuthToken, MaxFiles: r.MaxFiles, MaxFileSize: r.MaxFileSize}
		if r.SyncMinutes != nil {
			if *r.SyncMinutes < 0 || *r.SyncMinutes > maxSyncInterval.Minutes() {
				return Source{}, newError("set minutes, such as 60", "syncInterval %v is not a number of minutes from 0 to %d", *r.SyncMinutes, maxSyncInterval/time.Minute)
			}
			interval := SourceTime(*r.SyncMinutes * float64(time.Minute))
			s.Interval = &interval
		}
		return s, nil
	}
	var named struct{ Name string }
	_ = json.Unmarshal(item, &named)
	stripped := map[string]json.RawMessage{}
	_ = json.Unmarshal(item, &stripped)
	delete(stripped, "name")
	text, _ := json.Marshal(stripped)
	s := Source{Name: named.Name}
	of := "the source"
	if s.Name != "" {
		of = fmt.Sprintf("the source %q", s.Name)
	}
	if _, invalid := decodeEntry(text, &s, of); invalid != nil {
		return Source{}, invalid
	}
	if s.Git == "" {
		return Source{}, newError(`add "repositoryUrl"`, "the source names no repository")
	}
	return s, nil
}

// addSource adds a source that a variable defines. It may have no name yet.
func (l *loader) addSource(s Source) {
	named := s
	if named.Name == "" {
		named.Name = "unnamed"
	}
	if invalid := named.validate(); invalid != nil {
		l.reportError(guideway.Diagnostic{File: s.Origin.Name}, invalid)
		return
	}
	l.config.Sources = append(l.config.Sources, s)
}
