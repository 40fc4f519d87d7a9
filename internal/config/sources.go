package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/guideway-dev/guideway"
)

// Source is a repository or a registry that definitions come from.
type Source struct {
	Name string `json:"-"`

	// Git is the address of a repository, Registry that of a registry; one of the
	// two is given.
	Git      string `json:"git,omitempty"`
	Registry string `json:"registry,omitempty"`

	// Branch, Tag or Commit is what is followed of a repository; nothing is its
	// default branch. Path is the directory of the definitions in it.
	Branch string `json:"branch,omitempty"`
	Tag    string `json:"tag,omitempty"`
	Commit string `json:"commit,omitempty"`
	Path   string `json:"path,omitempty"`

	// Token is what to log in with over https; it may refer to a secret, as
	// "${env:NAME}" and "${keychain:NAME}". User is the name beside it.
	Token string `json:"token,omitempty"`
	User  string `json:"user,omitempty"`
	// SSHKey and KnownHosts are files.
	SSHKey     string `json:"sshKey,omitempty"`
	KnownHosts string `json:"knownHosts,omitempty"`

	// Interval is how often the source is looked at; nil is the setting
	// workflows.syncInterval.
	Interval *SourceTime `json:"interval,omitempty"`
	// Trust is trusted, review or blocked; empty is review.
	Trust string `json:"trust,omitempty"`
	// AllowPrivate lets a registry be at a private address.
	AllowPrivate bool `json:"allowPrivate,omitempty"`

	// MaxFiles, MaxFileSize and MaxBytes bound what is taken; 0 is the default.
	MaxFiles    int   `json:"maxFiles,omitempty"`
	MaxFileSize int64 `json:"maxFileSize,omitempty"`
	MaxBytes    int64 `json:"maxBytes,omitempty"`

	Disabled bool `json:"disabled,omitempty"`

	// Origin is where it is configured.
	Origin Origin `json:"-"`
}

// SourceTime is a time such as "5m"; "0s" is as often as possible.
type SourceTime time.Duration

// UnmarshalJSON implements json.Unmarshaler.
func (t *SourceTime) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return errors.New(`a time is a text such as "5m"`)
	}
	d, err := ParseDuration(text)
	if err != nil || d > maxSyncInterval {
		return fmt.Errorf(`%q is not a time such as "5m"`, text)
	}
	*t = SourceTime(d)
	return nil
}

// MarshalJSON implements json.Marshaler.
func (t SourceTime) MarshalJSON() ([]byte, error) {
	return json.Marshal(DurationText(time.Duration(t)))
}

const (
	defaultSyncInterval    = time.Minute
	defaultRegistryTimeout = 10 * time.Second
	maxSyncInterval        = 30 * day
)

// The variables of sources that are no settings.
const (
	// EnvGitRepos are repositories: addresses with commas between them, each with
	// "#branch" behind it where it follows one, or a list of objects as JSON.
	EnvGitRepos = "GUIDEWAY_GIT_REPOS"
	// EnvRegistryURL is the address of a registry.
	EnvRegistryURL = "GUIDEWAY_REGISTRY_URL"
	// EnvRegistryKey is the key for that registry.
	EnvRegistryKey = "GUIDEWAY_REGISTRY_KEY"
	// EnvRegistryPrivate lets that registry be at a private address: true or 1.
	EnvRegistryPrivate = "GUIDEWAY_REGISTRY_ALLOW_PRIVATE"
)

// sourceSettings are the settings of all sources that are elsewhere.
func sourceSettings() []setting {
	return []setting{
		{
			Setting: Setting{
				Name: "workflows.hosts", Kind: KindList, Flag: "source-host", Env: "GUIDEWAY_SOURCE_HOSTS",
				Usage: "Hosts of your own that repositories may be fetched from; \"http://\" before one allows it without encryption.",
			},
			check: checkSourceHost,
			set:   func(c *Config, v value) { c.Workflows.Hosts = v.list },
			text:  func(c *Config) string { return strings.Join(c.Workflows.Hosts, ",") },
		},
		{
			Setting: Setting{
				Name: "workflows.syncInterval", Kind: KindDuration, Flag: "sync-interval", Env: "GUIDEWAY_SYNC_INTERVAL",
				Aliases: []Alias{{Name: "WORKFLOW_GIT_SYNC_INTERVAL", convert: minutes}},
				Usage:   "How often repositories and registries are looked at, such as \"5m\".",
			},
			most: int64(maxSyncInterval),
			set:  func(c *Config, v value) { c.Workflows.SyncInterval = v.duration },
			text: func(c *Config) string { return c.Workflows.SyncInterval.String() },
		},
		{
			Setting: Setting{
				Name: "workflows.registryTimeout", Kind: KindDuration, Flag: "registry-timeout", Env: "GUIDEWAY_REGISTRY_TIMEOUT",
				Aliases: []Alias{{Name: "WORKFLOW_REGISTRY_TIMEOUT", convert: milliseconds}},
				Usage:   "How long one answer of a registry may take, such as \"10s\".",
			},
			set:  func(c *Config, v value) { c.Workflows.RegistryTimeout = v.duration },
			text: func(c *Config) string { return c.Workflows.RegistryTimeout.String() },
		},
		{
			Setting: Setting{
				Name: "workflows.cacheDir", Kind: KindPath, Flag: "source-cache", Env: "GUIDEWAY_SOURCE_CACHE",
				Aliases: []Alias{{Name: "WORKRAIL_CACHE_DIR"}},
				Usage:   "Directory of the copies of repositories and registries.",
			},
			set:  func(c *Config, v value) { c.Workflows.CacheDir = v.text },
			text: func(c *Config) string { return c.Workflows.CacheDir },
		},
		{
			Setting: Setting{
				Name: "workflows.trust", Kind: KindList, Flag: "source-trust", Env: "GUIDEWAY_SOURCE_TRUST",
				Usage: "Trust in sources by their names, such as \"project=trusted\" or \"plugins=blocked\": trusted, review or blocked.",
			},
			check: func(text string) *fault { _, _, f := splitTrust(text); return f },
			set: func(c *Config, v value) {
				c.Workflows.Trust = map[string]string{}
				for _, text := range v.list {
					name, level, _ := splitTrust(text)
					c.Workflows.Trust[name] = level
				}
			},
			text: func(c *Config) string {
				var texts []string
				for name, level := range c.Workflows.Trust {
					texts = append(texts, name+"="+level)
				}
				slices.Sort(texts)
				return strings.Join(texts, ",")
			},
		},
	}
}

// trustLevels are the levels of trust in a source.
func trustLevels() []string { return []string{"trusted", "review", "blocked"} }

func splitTrust(text string) (name, level string, f *fault) {
	name, level, ok := strings.Cut(text, "=")
	if !ok || name == "" || !slices.Contains(trustLevels(), level) {
		return "", "", faultf(`write NAME=LEVEL, such as "project=trusted"; the levels are `+strings.Join(trustLevels(), ", "), "%q is not the trust in a source", text)
	}
	return name, level, nil
}

func checkSourceHost(text string) *fault {
	bare := strings.TrimPrefix(text, "http://")
	if f := checkHost(bare); f != nil {
		return faultf(`write a host or host:port, such as "git.example.com"`, "%q is not a host", text)
	}
	return nil
}

// minutes reads a duration that is a number of minutes.
func minutes(text string) (string, *fault) {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil || n < 0 || n > int64(maxSyncInterval/time.Minute) {
		return "", faultf(`give minutes, such as 60, or use GUIDEWAY_SYNC_INTERVAL=1h`,
			"%q is not a number of minutes from 0 to %d", text, maxSyncInterval/time.Minute)
	}
	return (time.Duration(n) * time.Minute).String(), nil
}

var sourceName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,39}$`) })

// reservedName says whether a name is that of a source that is always there.
func reservedName(name string) bool {
	return slices.Contains([]string{"bundled", "user", "plugins", "file", "project", "project-guideway", "custom"}, name) ||
		strings.HasPrefix(name, "custom-") || strings.HasPrefix(name, "npm-")
}

// sources reads the sources of the file. Whether one can be reached as it is
// described is judged where it is used.
func (f *fileReader) sources(at int) {
	f.entries(at, entries{
		one: "source", fix: `write an object of sources by their names, such as {"team": {"git": "https://…"}}`,
		read: func(name string, text []byte, origin Origin) (int, *fault) {
			s := Source{Name: name, Origin: origin}
			if offset, problem := decodeSource(text, &s); problem != nil {
				return offset, problem
			}
			if problem := s.check(); problem != nil {
				return 0, problem
			}
			f.config.Sources = append(f.config.Sources, s)
			return 0, nil
		},
	})
}

// check judges what can be judged without knowing how a source is reached.
func (s *Source) check() *fault {
	switch {
	case !sourceName().MatchString(s.Name):
		return faultf("use small letters, digits, dots and dashes, at most 40", "%q is not a name for a source", s.Name)
	case reservedName(s.Name):
		return faultf("choose another name", "%q is the name of a source that is always there", s.Name)
	case (s.Git == "") == (s.Registry == ""):
		return faultf(`give "git" or "registry"`, "the source %q needs the address of a repository or of a registry", s.Name)
	case s.Registry != "" && s.Branch+s.Tag+s.Commit+s.Path+s.SSHKey+s.KnownHosts != "":
		return faultf("remove what is of repositories", "the source %q is a registry, which has no branches, directories and keys of ssh", s.Name)
	case s.Trust != "" && !slices.Contains(trustLevels(), s.Trust):
		return faultf("use one of: "+strings.Join(trustLevels(), ", "), "%q is not the trust in a source", s.Trust)
	case s.MaxFiles < 0 || s.MaxFileSize < 0 || s.MaxBytes < 0:
		return faultf("leave it out for the default", "the source %q has a bound below zero", s.Name)
	}
	return nil
}

// decodeSource reads one source; offset is where in its text the problem is, as far
// as that is known.
func decodeSource(text []byte, s *Source) (offset int, problem *fault) {
	return decodeEntry(text, s, fmt.Sprintf("the source %q", s.Name))
}

// readSources reads the variables of sources, which add to those of the file.
func (l *loader) readSources() {
	if name, text := l.firstSet(EnvGitRepos, "WORKFLOW_GIT_REPOS"); text != "" {
		l.readRepositories(name, text)
	} else if text := l.opts.Getenv("WORKFLOW_GIT_REPO_URL"); text != "" {
		l.addSource(Source{Git: text, Branch: l.opts.Getenv("WORKFLOW_GIT_REPO_BRANCH"), Origin: Origin{OriginEnv, "WORKFLOW_GIT_REPO_URL"}})
	}
	if name, text := l.firstSet(EnvRegistryURL, "WORKFLOW_REGISTRY_URL"); text != "" {
		_, key := l.firstSet(EnvRegistryKey, "WORKFLOW_REGISTRY_API_KEY")
		private, _ := truthful(l.opts.Getenv(EnvRegistryPrivate))
		l.addSource(Source{Registry: text, Token: key, AllowPrivate: private == "true", Origin: Origin{OriginEnv, name}})
	}
}

// firstSet is the first of some variables that is set.
func (l *loader) firstSet(names ...string) (name, text string) {
	for _, name := range names {
		if text := strings.TrimSpace(l.opts.Getenv(name)); text != "" {
			return name, text
		}
	}
	return "", ""
}

// readRepositories reads a list of repositories: JSON, or addresses with commas. What
// is wrong is told without the text, which may hold a token.
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
	const fix = `write a list such as [{"repositoryUrl": "https://github.com/acme/workflows", "branch": "main"}], or addresses with commas`
	var items []json.RawMessage
	if json.Unmarshal([]byte(text), &items) != nil {
		l.fault(guideway.Diagnostic{File: name}, faultf(fix, "the value is no JSON list"))
		return
	}
	for i, item := range items {
		s, problem := readRepository(item)
		if problem != nil {
			problem.message = fmt.Sprintf("element %d: %s", i+1, problem.message)
			l.fault(guideway.Diagnostic{File: name}, problem)
			continue
		}
		s.Origin = Origin{OriginEnv, name}
		l.addSource(s)
	}
}

// repository is an element of WORKFLOW_GIT_REPOS, which knows more names than ours.
type repository struct {
	URL         string   `json:"repositoryUrl"`
	Branch      string   `json:"branch"`
	SyncMinutes *float64 `json:"syncInterval"`
	AuthToken   string   `json:"authToken"`
	MaxFiles    int      `json:"maxFiles"`
	MaxFileSize int64    `json:"maxFileSize"`
	// LocalPath is where the other system keeps its clone; there is none here.
	LocalPath string `json:"localPath"`
}

// readRepository reads one element: a text, or an object of either system's form.
func readRepository(item json.RawMessage) (Source, *fault) {
	var url string
	if json.Unmarshal(item, &url) == nil {
		return Source{Git: url}, nil
	}
	var r repository
	if json.Unmarshal(item, &r) == nil && r.URL != "" {
		s := Source{Git: r.URL, Branch: r.Branch, Token: r.AuthToken, MaxFiles: r.MaxFiles, MaxFileSize: r.MaxFileSize}
		if r.SyncMinutes != nil {
			if *r.SyncMinutes < 0 || *r.SyncMinutes > maxSyncInterval.Minutes() {
				return Source{}, faultf("give minutes, such as 60", "syncInterval is not a number of minutes")
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
	if _, problem := decodeSource(text, &s); problem != nil {
		return Source{}, problem
	}
	if s.Git == "" {
		return Source{}, faultf(`give "repositoryUrl"`, "it names no repository")
	}
	return s, nil
}

// addSource adds a source of a variable. It need not have a name yet.
func (l *loader) addSource(s Source) {
	named := s
	if named.Name == "" {
		named.Name = "unnamed"
	}
	if problem := named.check(); problem != nil {
		l.fault(guideway.Diagnostic{File: s.Origin.Name}, problem)
		return
	}
	l.config.Sources = append(l.config.Sources, s)
}
