package definition

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/safeopen"
)

// The names of files in a machine's own directory. configStem and configStemOld are names
// of the configuration without extension; SynthDev uses config.
const (
	configStem    = "machine"
	configStemOld = "config"
	scriptFile    = "script.js"
	rolesStem     = "roles"
	rolesFile     = rolesStem + ".json"
	recordingFile = "recording.json"
)

// The maximum size of a file in bytes, and the maximum number of machines in a directory.
const (
	maxFile     = 1 << 20
	maxMachines = 1000
)

// Loaded is the result of loading one configuration of a directory.
type Loaded struct {
	// Path is the path of the configuration, as diagnostics show it.
	Path string
	// Definition is nil if the machine does not load.
	Definition *Definition
	// Claims is the name of the machine. If the machine does not load, it is the name that
	// the machine probably has.
	Claims string
	// Found lists the errors if the machine does not load.
	Found []guideway.Diagnostic
	files Files
}

// Lint returns the linter's diagnostics of a machine that loads.
func (l *Loaded) Lint() []guideway.Diagnostic {
	_, found := Check(l.files)
	return found
}

// Files returns the files of the machine.
func (l *Loaded) Files() Files { return l.files }

// LoadFiles loads all machines of a directory with the given file names: NAME.json with
// NAME/script.js and NAME/roles.json, or NAME/machine.json with both in the same directory;
// roles.json in the directory itself applies to all machines. A configuration may also be a
// YAML file, and machine.json may also be named config.json. read returns the content of a
// file, or an error that wraps fs.ErrNotExist. prefix is the path of the directory as
// diagnostics show it.
func LoadFiles(names []string, read func(name string) ([]byte, error), prefix string) []Loaded {
	var out []Loaded
	there := map[string]bool{}
	for _, name := range names {
		there[name] = true
	}
	done := map[string]bool{}
	for _, name := range slices.Sorted(slices.Values(names)) {
		dir, base := path.Split(name)
		dir = strings.TrimSuffix(dir, "/")
		switch {
		case len(out) == maxMachines || isIgnored(name) || isIgnored(dir) || !isConfig(base):
		case dir == "" && stemOf(base) != rolesStem:
			out = append(out, loadMachine(read, prefix, name, stemOf(name), joinPrefix(prefix, stemOf(name))))
		case dir != "" && !done[dir] && !strings.Contains(dir, "/"):
			if config := configAmong(dir, func(name string) bool { return there[name] }); config != "" {
				done[dir] = true
				out = append(out, loadMachine(read, prefix, config, dir, ""))
			}
		}
	}
	return out
}

// isIgnored reports whether a name is hidden or never part of a machine.
func isIgnored(name string) bool {
	return strings.HasPrefix(name, ".") || name == "testdata" || name == "node_modules"
}

// IsFile reports whether a file with this name in a machine directory is part of a machine.
// recording reports whether only demonstrations read it.
func IsFile(name string) (is, recording bool) {
	dir, base, nested := strings.Cut(name, "/")
	if !nested {
		return isConfig(name) && !isIgnored(name), false
	}
	switch stem := stemOf(base); {
	case strings.Contains(base, "/") || isIgnored(dir):
		return false, false
	case base == recordingFile:
		return true, true
	default:
		return base == scriptFile || base == rolesFile || isConfig(base) && (stem == configStem || stem == configStemOld), false
	}
}

// RecordingOf returns the path of a machine's recording, relative to the directory. prefix
// must be the prefix that LoadFiles was called with.
func RecordingOf(l Loaded, prefix string) string {
	name := strings.TrimPrefix(strings.TrimPrefix(l.Path, prefix), "/")
	if dir := path.Dir(name); dir != "." {
		return path.Join(dir, recordingFile)
	}
	return path.Join(stemOf(name), recordingFile)
}

// LoadFile loads one machine, by the path of its configuration or of its directory.
func LoadFile(fsys fs.FS, prefix, name string) Loaded {
	read := func(name string) ([]byte, error) { return readFile(fsys, name) }
	if info, err := fs.Stat(fsys, name); err == nil && info.IsDir() {
		config := configAmong(name, func(name string) bool {
			info, err := fs.Stat(fsys, name)
			return err == nil && info.Mode().IsRegular()
		})
		if config == "" {
			config = path.Join(name, configStem+".json")
		}
		return loadMachine(read, prefix, config, name, "")
	}
	dir := path.Join(path.Dir(name), stemOf(name))
	if stem := stemOf(name); stem == configStem || stem == configStemOld {
		if _, err := fs.Stat(fsys, path.Join(path.Dir(name), scriptFile)); err == nil {
			dir = path.Dir(name)
		}
	}
	return loadMachine(read, prefix, name, dir, "")
}

func stemOf(name string) string {
	return strings.TrimSuffix(path.Base(name), path.Ext(name))
}

func isConfig(name string) bool {
	return slices.Contains([]string{".json", ".yaml", ".yml"}, strings.ToLower(path.Ext(name)))
}

// configAmong returns the configuration in a machine's own directory, or "".
func configAmong(dir string, there func(name string) bool) string {
	for _, stem := range []string{configStem, configStemOld} {
		for _, ext := range []string{".json", ".yaml", ".yml"} {
			if name := path.Join(dir, stem+ext); there(name) {
				return name
			}
		}
	}
	return ""
}

// joinPrefix returns the path of a file as diagnostics show it. If prefix is a URL, the
// result is a URL.
func joinPrefix(prefix, name string) string {
	if strings.Contains(prefix, "://") {
		return strings.TrimSuffix(prefix, "/") + "/" + name
	}
	return path.Join(prefix, name)
}

// loadMachine loads a machine with its script and roles in dir. scriptDir is dir as
// diagnostics show it, or "" if the path of the configuration determines it.
func loadMachine(text func(name string) ([]byte, error), prefix, config, dir, scriptDir string) Loaded {
	l := Loaded{Path: joinPrefix(prefix, config), Claims: stemOf(config)}
	if s := l.Claims; s == configStem || s == configStemOld {
		l.Claims = path.Base(dir)
	}
	read := func(name string) *File {
		data, err := text(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			l.Found = append(l.Found, guideway.Diagnostic{
				Severity: guideway.SeverityError, Code: CodeFile, File: joinPrefix(prefix, name),
				Message: "The file cannot be read: " + safeopen.Cause(err).Error() + ".", Fix: "replace the file with a readable, regular file of at most 1 MiB",
			})
			return nil
		}
		return &File{Path: joinPrefix(prefix, name), Data: data}
	}
	f := read(config)
	if f == nil {
		if len(l.Found) == 0 {
			l.Found = []guideway.Diagnostic{{
				Severity: guideway.SeverityError, Code: CodeFile, File: l.Path,
				Message: "The configuration of the machine does not exist.", Fix: "pass a configuration, or a directory with machine.json and script.js",
			}}
		}
		return l
	}
	l.files = Files{Config: *f, Script: read(path.Join(dir, scriptFile)), ScriptDir: scriptDir}
	beside := path.Dir(dir)
	for _, name := range []string{path.Join(dir, rolesFile), path.Join(beside, rolesFile)} {
		if roles := read(name); roles != nil {
			l.files.Roles = append(l.files.Roles, *roles)
		}
	}
	if len(l.Found) > 0 {
		return l
	}
	if l.Definition, l.Found = Parse(l.files); l.Definition != nil {
		l.Claims = l.Definition.Name
	}
	return l
}

// readFile reads a file up to the size limit.
func readFile(fsys fs.FS, name string) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file")
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("it is larger than %d bytes", maxFile)
	}
	return data, err
}
