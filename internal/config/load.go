package config

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/spelling"
)

// Options select the sources of settings. The zero value reads the process's environment.
type Options struct {
	// File is the configuration file. Empty means $GUIDEWAY_CONFIG or, if that is not set,
	// guideway.json in the user's configuration directory or, if none exists, config.json
	// in the data directory. A named file must exist.
	File string
	// Flags are the flags by the name of their setting. The flag of a list may be repeated.
	Flags map[string][]string
	// Getenv looks up a variable. Nil means os.Getenv. An empty variable counts as not set.
	Getenv func(string) string
	// Environ lists all variables like os.Environ. If it is set, unknown variables that
	// start with GUIDEWAY_ are reported as warnings.
	Environ []string
	// GOOS is the platform. Empty means the current one.
	GOOS string
	// Dir is the working directory. Empty means the working directory of the process.
	Dir string
}

// InvalidError has all diagnostics that prevent the use of the settings.
type InvalidError struct {
	Diagnostics []guideway.Diagnostic
}

// Error lists the diagnostics, one per line.
func (p *InvalidError) Error() string {
	var b strings.Builder
	if len(p.Diagnostics) == 1 {
		b.WriteString("the configuration is invalid:")
	} else {
		fmt.Fprintf(&b, "the configuration has %d errors:", len(p.Diagnostics))
	}
	for _, d := range p.Diagnostics {
		b.WriteString("\n  ")
		b.WriteString(formatDiagnostic(d))
	}
	return b.String()
}

// formatDiagnostic returns a diagnostic on one line: position, message, fix.
func formatDiagnostic(d guideway.Diagnostic) string {
	place := d.File
	if d.Line > 0 {
		place = fmt.Sprintf("%s:%d:%d", d.File, d.Line, d.Column)
	}
	if d.Fix == "" {
		return place + ": " + d.Message
	}
	return place + ": " + d.Message + "; " + d.Fix
}

// Load loads the settings. If some are invalid, it returns an error with the code
// guideway.CodeInvalid that wraps *InvalidError with all diagnostics, and a Config with the
// valid settings. A command that reports on the installation can use that Config; all other
// commands must stop.
func Load(opts Options) (*Config, error) {
	l := newLoader(opts)
	l.applyDefaults()
	l.readFile()
	l.readEnv()
	l.readFlags()
	l.deriveSettings()
	if len(l.errors) > 0 {
		invalid := &InvalidError{Diagnostics: l.errors}
		return l.config, &guideway.Error{Code: guideway.CodeInvalid, Message: invalid.Error(), Err: invalid}
	}
	return l.config, nil
}

// loader builds a Config layer by layer.
type loader struct {
	opts   Options
	goos   string
	home   string
	dir    string
	table  []Setting
	config *Config
	errors []guideway.Diagnostic
}

func newLoader(opts Options) *loader {
	l := &loader{opts: opts, goos: opts.GOOS, dir: opts.Dir, table: Settings()}
	l.goos = cmp.Or(l.goos, runtime.GOOS)
	if l.opts.Getenv == nil {
		l.opts.Getenv = os.Getenv
	}
	if l.dir == "" {
		// Without a working directory, relative paths are errors.
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

func (l *loader) applyDefaults() {
	c := l.config
	for i := range l.table {
		s := &l.table[i]
		if s.initial != nil {
			v, _ := s.decodeJSON(s.initial) // The schema, which has the defaults, is tested.
			v, _ = s.checkValue(v)
			s.storeValue(c, v)
		}
	}
	c.Workflows.UserDir = joinPath(l.goos, c.Dirs.Config, "workflows")
	c.Workflows.CacheDir = joinPath(l.goos, c.Dirs.Cache, "sources")
	c.DataDir = c.Dirs.Data
	c.Journal.HeadsDir = joinPath(l.goos, c.Dirs.State, "heads")
	c.Encryption.KeyFile = joinPath(l.goos, c.Dirs.Config, "checkpoints.key")
}

// deriveSettings sets the settings that depend on others.
func (l *loader) deriveSettings() {
	c := l.config
	l.warnAboutConflicts()
	if c.DataDir == "" {
		l.addError(guideway.Diagnostic{
			Code: "config-no-data-dir", File: "environment",
			Message: "the data directory is unknown, because the environment defines no home directory",
			Fix:     "set HOME (USERPROFILE on Windows) or GUIDEWAY_DATA_DIR",
		})
		return
	}
	if c.TokenFile == "" {
		c.TokenFile = joinPath(l.goos, c.DataDir, "token")
	}
	if c.Journal.KeyFile == "" {
		c.Journal.KeyFile = joinPath(l.goos, c.DataDir, "journal.key")
	}
	if c.Encryption.KeyFile == "" { // Without a home directory, the path is empty.
		c.Encryption.KeyFile = joinPath(l.goos, c.DataDir, "checkpoints.key")
	}
	if c.Journal.HeadsDir == "" { // Without a home directory, there is no separate directory.
		c.Journal.HeadsDir = joinPath(l.goos, c.DataDir, "heads")
	}
}

// warnAboutConflicts adds warnings about settings that contradict each other.
func (l *loader) warnAboutConflicts() {
	e, k := l.config.Encryption, l.config.Checkpoints
	origin := l.config.Origin("encryption.passphraseFile")
	switch passphrase := e.Mode == EncryptionPassphrase; {
	case e.PassphraseFile != "" && !passphrase:
		l.addWarning(guideway.Diagnostic{
			Code: "config-unused", File: origin.Name,
			Message: fmt.Sprintf("encryption.passphraseFile has no effect, because encryption.mode is %q", e.Mode),
			Fix:     "set encryption.mode to " + EncryptionPassphrase + ", or remove encryption.passphraseFile",
		})
	case e.PassphraseFile != "" && e.Passphrase != "":
		l.addWarning(guideway.Diagnostic{
			Code: "config-shadowed", File: origin.Name,
			Message: "encryption.passphraseFile is ignored, because " + EnvPassphrase + " is set",
			Fix:     "unset " + EnvPassphrase + ", or remove encryption.passphraseFile",
		})
	case e.Passphrase != "" && !passphrase:
		l.addWarning(guideway.Diagnostic{
			Code: "config-unused", File: EnvPassphrase,
			Message: fmt.Sprintf("%s has no effect, because encryption.mode is %q", EnvPassphrase, e.Mode),
			Fix:     "set encryption.mode to " + EncryptionPassphrase + ", or unset " + EnvPassphrase,
		})
	}
	if k.CleanAt < k.WarnAt {
		l.addWarning(guideway.Diagnostic{
			Code: "config-order", File: l.config.Origin("checkpoints.cleanAt").Name,
			Message: fmt.Sprintf("checkpoints.cleanAt is %d %%, but checkpoints.warnAt is %d %%: checkpoints are deleted before a warning", k.CleanAt, k.WarnAt),
			Fix:     fmt.Sprintf("set checkpoints.warnAt to at most %d, or raise checkpoints.cleanAt", k.CleanAt),
		})
	}
}

func (l *loader) addError(d guideway.Diagnostic) {
	d.Severity = guideway.SeverityError
	l.errors = append(l.errors, d)
}

func (l *loader) addWarning(d guideway.Diagnostic) {
	d.Severity = guideway.SeverityWarning
	l.config.Warnings = append(l.config.Warnings, d)
}

// applyValue checks a decoded value and applies it, or reports an error. place is a
// diagnostic with the position of the value.
func (l *loader) applyValue(s *Setting, v value, base string, place guideway.Diagnostic, origin Origin) {
	v, f := s.checkValue(v)
	if f != nil {
		l.reportError(place, f)
		return
	}
	switch s.Kind {
	case KindPath:
		v.text, f = l.resolvePath(v.text, base)
	case KindPaths:
		v.list = slices.Clone(v.list)
		for i := range v.list {
			if v.list[i], f = l.resolvePath(v.list[i], base); f != nil {
				break
			}
		}
	}
	if f != nil {
		l.reportError(place, f)
		return
	}
	s.storeValue(l.config, v)
	l.config.origins[s.Name] = origin
}

func (l *loader) reportError(place guideway.Diagnostic, f *settingError) {
	place.Code = cmp.Or(place.Code, "config-value")
	place.Message, place.Fix = f.message, f.fix
	l.addError(place)
}

// resolvePath makes a path absolute: "~" is the home directory, and a relative path is
// resolved in base.
func (l *loader) resolvePath(path, base string) (string, *settingError) {
	rest, tilde := strings.CutPrefix(path, "~")
	tilde = tilde && (rest == "" || rest[0] == '/' || (l.goos == "windows" && rest[0] == '\\'))
	switch {
	case tilde && l.home == "":
		return "", newError("write the path in full", "%q cannot be resolved, because the environment defines no home directory", path)
	case tilde:
		path = l.home + rest
	case !isAbs(l.goos, path) && base == "":
		return "", newError("write the path in full", "%q cannot be resolved, because the current directory is unknown", path)
	case !isAbs(l.goos, path):
		path = joinPath(l.goos, base, path)
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
			l.applyEnv(s, s.Env, own)
		}
		read := ""
		if own != "" {
			read = s.Env
		}
		for _, alias := range s.Aliases {
			text := l.opts.Getenv(alias)
			switch {
			case text == "":
			case read != "":
				l.addWarning(guideway.Diagnostic{
					Code: "config-shadowed", File: alias,
					Message: fmt.Sprintf("%s is ignored, because %s is set", alias, read),
					Fix:     "remove one of the two variables",
				})
			default:
				l.applyEnv(s, alias, text)
				read = alias
			}
		}
	}
	l.readSourceVariables()
	l.config.Encryption.Passphrase = l.opts.Getenv(EnvPassphrase)
	l.config.Context.EmbeddingsKey = l.opts.Getenv(EnvEmbeddingsKey)
	l.unknownVariables()
}

func (l *loader) applyEnv(s *Setting, name, text string) {
	place := guideway.Diagnostic{File: name}
	text, f := convertValue(name, text)
	if f != nil {
		l.reportError(place, f)
		return
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
		fix := "remove the variable, or use one of: " + strings.Join(known, ", ")
		if near := spelling.Closest(name, known); near != "" {
			fix = fmt.Sprintf("did you mean %s?", near)
		}
		l.addWarning(guideway.Diagnostic{
			Code: "config-unknown-variable", File: name,
			Message: name + " is not a Guideway variable", Fix: fix,
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

// applyTexts applies the value of a variable or a flag.
func (l *loader) applyTexts(s *Setting, texts []string, place guideway.Diagnostic, origin Origin) {
	if len(texts) == 0 && s.Kind != KindList && s.Kind != KindPaths {
		return
	}
	v, f := s.parseTexts(texts)
	if f != nil {
		l.reportError(place, f)
		return
	}
	l.applyValue(s, v, l.dir, place, origin)
}

// parseTexts converts the value of a variable or a flag.
func (s *Setting) parseTexts(texts []string) (value, *settingError) {
	if s.Kind == KindList || s.Kind == KindPaths {
		return value{list: texts}, nil
	}
	// As usual on a command line, the last one takes precedence.
	v := value{text: texts[len(texts)-1]}
	if s.Kind != KindBool {
		return v, nil
	}
	switch strings.ToLower(strings.TrimSpace(v.text)) {
	case "true", "1":
		v.flag = true
	case "false", "0":
	default:
		return v, newError("write true or false", "%q is neither true nor false", v.text)
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

// DiagnosticsOf returns the diagnostics that err wraps, or nil.
func DiagnosticsOf(err error) []guideway.Diagnostic {
	var invalid *InvalidError
	if errors.As(err, &invalid) {
		return invalid.Diagnostics
	}
	return nil
}
