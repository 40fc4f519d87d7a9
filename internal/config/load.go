package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/spelling"
)

// Options say where settings are read from. The zero value reads those of the
// process.
type Options struct {
	// File is the configuration file; empty means $GUIDEWAY_CONFIG, and
	// without that guideway.json in the user's configuration directory. A file
	// that is named must exist.
	File string
	// Flags are the flags that were given, by the name of their setting. A
	// list may be repeated.
	Flags map[string][]string
	// Getenv looks up a variable; nil means os.Getenv. An empty variable
	// counts as not set.
	Getenv func(string) string
	// Environ lists all variables as os.Environ does; with it, a variable
	// that begins with GUIDEWAY_ and means nothing is warned about.
	Environ []string
	// GOOS is the platform; empty means this one.
	GOOS string
	// Dir is the working directory; empty means the process's.
	Dir string
}

// Problems are all findings that keep the settings from being used.
type Problems struct {
	Diagnostics []guideway.Diagnostic
}

// Error lists every problem, one a line.
func (p *Problems) Error() string {
	var b strings.Builder
	if len(p.Diagnostics) == 1 {
		b.WriteString("the configuration is invalid:")
	} else {
		fmt.Fprintf(&b, "the configuration has %d problems:", len(p.Diagnostics))
	}
	for _, d := range p.Diagnostics {
		b.WriteString("\n  ")
		b.WriteString(describe(d))
	}
	return b.String()
}

// describe puts a finding on one line: place, message, fix.
func describe(d guideway.Diagnostic) string {
	place := d.File
	if d.Line > 0 {
		place = fmt.Sprintf("%s:%d:%d", d.File, d.Line, d.Column)
	}
	if d.Fix == "" {
		return place + ": " + d.Message
	}
	return place + ": " + d.Message + "; " + d.Fix
}

// Load reads the settings. On a problem it returns an error with code
// guideway.CodeInvalid that wraps *Problems with every finding, and still a
// Config in which the settings without problems are in force: a command that
// reports on the installation can go on with it, all others must stop.
func Load(opts Options) (*Config, error) {
	l := newLoader(opts)
	l.defaults()
	l.readFile()
	l.readEnv()
	l.readFlags()
	l.finish()
	if len(l.problems) > 0 {
		problems := &Problems{Diagnostics: l.problems}
		return l.config, &guideway.Error{Code: guideway.CodeInvalid, Message: problems.Error(), Err: problems}
	}
	return l.config, nil
}

// loader builds a Config layer by layer.
type loader struct {
	opts     Options
	goos     string
	home     string
	dir      string
	table    []setting
	config   *Config
	problems []guideway.Diagnostic
}

func newLoader(opts Options) *loader {
	l := &loader{opts: opts, goos: opts.GOOS, dir: opts.Dir, table: settings()}
	if l.goos == "" {
		l.goos = runtime.GOOS
	}
	if l.opts.Getenv == nil {
		l.opts.Getenv = os.Getenv
	}
	if l.dir == "" {
		// Without a working directory relative paths stay relative and fail
		// where they are used, with their name.
		l.dir, _ = os.Getwd()
	}
	l.home = l.opts.Getenv("HOME")
	if l.goos == "windows" {
		l.home = l.opts.Getenv("USERPROFILE")
	}
	if !isAbs(l.goos, l.home) {
		l.home = ""
	}
	l.config = &Config{Dirs: userDirs(l.goos, l.home, l.opts.Getenv), origins: map[string]Origin{}}
	return l
}

func (l *loader) defaults() {
	c := l.config
	c.Listen = "127.0.0.1:3000"
	c.Toolsets = DefaultToolsets()
	c.Workflows = Workflows{
		Bundled: true, Plugins: true, User: true, Project: true,
		UserDir:      below(l.goos, c.Dirs.Config, "workflows"),
		CacheTTL:     defaultCacheTTL,
		SyncInterval: defaultSyncInterval, RegistryTimeout: defaultRegistryTimeout,
		CacheDir: below(l.goos, c.Dirs.Cache, "sources"),
	}
	c.Log = Log{Level: "warn", Format: "text"}
	c.DataDir = c.Dirs.Data
	c.Store = StoreSQLite
	c.Gates = Gates{Approval: ApprovalAgent}
	c.Gateway = Gateway{Exposure: ExposureAll, Health: 30 * time.Second}
	c.Journal.HeadsDir = below(l.goos, c.Dirs.State, "heads")
	c.Context, c.Checkpoints = contextDefaults(), checkpointDefaults()
	c.Requests = requestDefaults()
	c.Encryption = Encryption{Mode: EncryptionDisabled, KeyFile: below(l.goos, c.Dirs.Config, "checkpoints.key")}
}

// finish derives what depends on other settings.
func (l *loader) finish() {
	c := l.config
	l.compare()
	if c.DataDir == "" {
		l.problem(guideway.Diagnostic{
			Code: "config-no-data-dir", File: "environment",
			Message: "there is no directory for data, because the environment names no home directory",
			Fix:     "set HOME (USERPROFILE on Windows) or GUIDEWAY_DATA_DIR",
		})
		return
	}
	if c.TokenFile == "" {
		c.TokenFile = below(l.goos, c.DataDir, "token")
	}
	if c.Journal.KeyFile == "" {
		c.Journal.KeyFile = below(l.goos, c.DataDir, "journal.key")
	}
	if c.Encryption.KeyFile == "" { // no home directory
		c.Encryption.KeyFile = below(l.goos, c.DataDir, "checkpoints.key")
	}
	if c.Journal.HeadsDir == "" { // no home directory, so no other place is known
		c.Journal.HeadsDir = below(l.goos, c.DataDir, "heads")
	}
}

// compare warns of settings that do not go together.
func (l *loader) compare() {
	e, k := l.config.Encryption, l.config.Checkpoints
	origin := l.config.Origin("encryption.passphraseFile")
	switch passphrase := e.Mode == EncryptionPassphrase; {
	case e.PassphraseFile != "" && !passphrase:
		l.warn(guideway.Diagnostic{
			Code: "config-unused", File: origin.Name,
			Message: "there is a file of a passphrase, and checkpoints are not encrypted with one",
			Fix:     "set encryption.mode to " + EncryptionPassphrase + ", or remove encryption.passphraseFile",
		})
	case e.PassphraseFile != "" && e.Passphrase != "":
		l.warn(guideway.Diagnostic{
			Code: "config-shadowed", File: origin.Name,
			Message: "the file of the passphrase is not read, because " + EnvPassphrase + " is set",
			Fix:     "remove one of the two",
		})
	case e.Passphrase != "" && !passphrase:
		l.warn(guideway.Diagnostic{
			Code: "config-unused", File: EnvPassphrase,
			Message: "there is a passphrase, and checkpoints are not encrypted with one",
			Fix:     "set encryption.mode to " + EncryptionPassphrase + ", or remove the variable",
		})
	}
	if k.CleanAt < k.WarnAt {
		l.warn(guideway.Diagnostic{
			Code: "config-order", File: l.config.Origin("checkpoints.cleanAt").Name,
			Message: fmt.Sprintf("sessions go at %d %% of the limit of all checkpoints, before a warning at %d %%", k.CleanAt, k.WarnAt),
			Fix:     "set checkpoints.warnAt lower than checkpoints.cleanAt",
		})
	}
}

func (l *loader) problem(d guideway.Diagnostic) {
	d.Severity = guideway.SeverityError
	l.problems = append(l.problems, d)
}

func (l *loader) warn(d guideway.Diagnostic) {
	d.Severity = guideway.SeverityWarning
	l.config.Warnings = append(l.config.Warnings, d)
}

// apply checks a decoded value and puts it in force, or reports why not. The
// place is a diagnostic that holds where the value stands.
func (l *loader) apply(s *setting, v value, base string, place guideway.Diagnostic, origin Origin) {
	v, f := s.checked(v)
	if f != nil {
		l.fault(place, f)
		return
	}
	switch s.Kind {
	case KindPath:
		v.text, f = l.resolve(v.text, base)
	case KindPaths:
		v.list = slices.Clone(v.list)
		for i := range v.list {
			if v.list[i], f = l.resolve(v.list[i], base); f != nil {
				break
			}
		}
	}
	if f != nil {
		l.fault(place, f)
		return
	}
	s.set(l.config, v)
	l.config.origins[s.Name] = origin
}

func (l *loader) fault(place guideway.Diagnostic, f *fault) {
	if place.Code == "" {
		place.Code = "config-value"
	}
	place.Message, place.Fix = f.message, f.fix
	l.problem(place)
}

// resolve makes a path absolute: "~" is the home directory, and a relative one
// is below base.
func (l *loader) resolve(path, base string) (string, *fault) {
	rest, tilde := strings.CutPrefix(path, "~")
	tilde = tilde && (rest == "" || rest[0] == '/' || (l.goos == "windows" && rest[0] == '\\'))
	switch {
	case tilde && l.home == "":
		return "", faultf("write the path in full", "%q cannot be resolved, because the environment names no home directory", path)
	case tilde:
		path = l.home + rest
	case !isAbs(l.goos, path):
		path = below(l.goos, base, path)
	}
	if l.goos == runtime.GOOS {
		path = filepath.Clean(path)
	}
	return path, nil
}

func (l *loader) readEnv() {
	for i := range l.table {
		s := &l.table[i]
		own := l.opts.Getenv(s.Env)
		if own != "" {
			l.applyEnv(s, s.Env, own, nil)
		}
		read := ""
		if own != "" {
			read = s.Env
		}
		for _, alias := range s.Aliases {
			text := l.opts.Getenv(alias.Name)
			switch {
			case text == "":
			case read != "":
				l.warn(guideway.Diagnostic{
					Code: "config-shadowed", File: alias.Name,
					Message: fmt.Sprintf("%s is not read, because %s is set", alias.Name, read),
					Fix:     "remove one of the two variables",
				})
			default:
				l.applyEnv(s, alias.Name, text, alias.convert)
				read = alias.Name
			}
		}
	}
	l.readSources()
	l.config.Encryption.Passphrase = l.opts.Getenv(EnvPassphrase)
	l.config.Context.Embeddings.Key = l.opts.Getenv(EnvEmbeddingsKey)
	l.unknownVariables()
}

func (l *loader) applyEnv(s *setting, name, text string, convert func(string) (string, *fault)) {
	place := guideway.Diagnostic{File: name}
	if convert != nil {
		var f *fault
		if text, f = convert(text); f != nil {
			l.fault(place, f)
			return
		}
	}
	texts := []string{text}
	switch s.Kind {
	case KindList:
		texts = splitCommas(text)
	case KindPaths:
		texts = splitList(l.goos, text)
	}
	l.applyTexts(s, texts, place, Origin{Kind: OriginEnv, Name: name})
}

func (l *loader) unknownVariables() {
	known := []string{EnvConfig, EnvPassphrase, EnvEmbeddingsKey, EnvGitRepos, EnvRegistryURL, EnvRegistryKey, EnvRegistryPrivate}
	for i := range l.table {
		known = append(known, l.table[i].Env)
	}
	for _, entry := range l.opts.Environ {
		name, _, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, "GUIDEWAY_") || slices.Contains(known, name) {
			continue
		}
		fix := "remove it, or use one of: " + strings.Join(known, ", ")
		if near := spelling.Closest(name, known); near != "" {
			fix = fmt.Sprintf("did you mean %s?", near)
		}
		l.warn(guideway.Diagnostic{
			Code: "config-unknown-variable", File: name,
			Message: name + " means nothing to Guideway", Fix: fix,
		})
	}
}

func (l *loader) readFlags() {
	for i := range l.table {
		s := &l.table[i]
		texts, given := l.opts.Flags[s.Name]
		if !given {
			continue
		}
		if s.Kind == KindList {
			var split []string
			for _, text := range texts {
				split = append(split, splitCommas(text)...)
			}
			texts = split
		}
		name := "--" + s.Flag
		l.applyTexts(s, texts, guideway.Diagnostic{File: name}, Origin{Kind: OriginFlag, Name: name})
	}
}

// applyTexts applies what a variable or a flag gives.
func (l *loader) applyTexts(s *setting, texts []string, place guideway.Diagnostic, origin Origin) {
	if len(texts) == 0 && s.Kind != KindList && s.Kind != KindPaths {
		return
	}
	v, f := s.read(texts)
	if f != nil {
		l.fault(place, f)
		return
	}
	l.apply(s, v, l.dir, place, origin)
}

// read makes a value of what a variable or a flag gives.
func (s *setting) read(texts []string) (value, *fault) {
	if s.Kind == KindList || s.Kind == KindPaths {
		return value{list: texts}, nil
	}
	// As usual on a command line, the last one counts.
	v := value{text: texts[len(texts)-1]}
	if s.Kind != KindBool {
		return v, nil
	}
	switch strings.ToLower(strings.TrimSpace(v.text)) {
	case "true", "1":
		v.flag = true
	case "false", "0":
	default:
		return v, faultf("write true or false", "%q is neither true nor false", v.text)
	}
	return v, nil
}

func splitCommas(text string) []string {
	var parts []string
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			parts = append(parts, part)
		}
	}
	return parts
}

// AsProblems gives the findings that err carries, or nil.
func AsProblems(err error) []guideway.Diagnostic {
	var problems *Problems
	if errors.As(err, &problems) {
		return problems.Diagnostics
	}
	return nil
}
