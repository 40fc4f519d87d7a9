package machines

import (
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
)

// configStem is the name, without its extension, of a configuration within the
// machine's own directory; config is the one that the seed's system documents.
const (
	configStem    = "machine"
	configStemOld = "config"
	scriptFile    = "script.js"
	rolesFile     = "roles.json"
)

// The bounds of a directory of machines.
const (
	maxFile     = 1 << 20
	maxMachines = 1000
)

// Loaded is what one configuration in a directory has given.
type Loaded struct {
	// Path is where the configuration is, below the directory.
	Path string
	// Definition is nil where it does not load.
	Definition *Definition
	// Claims is the name that the machine has, or would have.
	Claims string
	// Found are the errors where it does not load.
	Found []guideway.Diagnostic
	files Files
}

// Lint gives what a linter says of a machine that loads.
func (l *Loaded) Lint() []guideway.Diagnostic {
	_, found := Check(l.files)
	return found
}

// Load reads all machines of a directory: NAME.json with NAME/script.js and
// NAME/roles.json beside it, or NAME/machine.json with both in the same
// directory; roles.json in the directory itself is for all of them. The prefix
// leads from a person's view to the directory. The error is of the directory.
func Load(fsys fs.FS, prefix string) ([]Loaded, error) {
	entries, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return nil, err
	}
	var out []Loaded
	for _, e := range entries {
		name := e.Name()
		if len(out) == maxMachines || strings.HasPrefix(name, ".") || name == "testdata" || name == "node_modules" {
			continue
		}
		switch {
		case e.IsDir():
			if config := configIn(fsys, name); config != "" {
				out = append(out, load(fsys, prefix, config, name))
			}
		case isConfig(name) && stemOf(name) != "roles":
			out = append(out, load(fsys, prefix, name, stemOf(name)))
		}
	}
	return out, nil
}

// LoadFile reads the machine of one configuration, which may be a directory.
func LoadFile(fsys fs.FS, prefix, name string) Loaded {
	if info, err := fs.Stat(fsys, name); err == nil && info.IsDir() {
		config := configIn(fsys, name)
		if config == "" {
			config = path.Join(name, configStem+".json")
		}
		return load(fsys, prefix, config, name)
	}
	dir := path.Join(path.Dir(name), stemOf(name))
	if stem := stemOf(name); stem == configStem || stem == configStemOld {
		if _, err := fs.Stat(fsys, path.Join(path.Dir(name), scriptFile)); err == nil {
			dir = path.Dir(name)
		}
	}
	return load(fsys, prefix, name, dir)
}

func stemOf(name string) string {
	return strings.TrimSuffix(path.Base(name), path.Ext(name))
}

func isConfig(name string) bool {
	return slices.Contains([]string{".json", ".yaml", ".yml"}, strings.ToLower(path.Ext(name)))
}

// configIn finds the configuration in a machine's own directory, or "".
func configIn(fsys fs.FS, dir string) string {
	for _, stem := range []string{configStem, configStemOld} {
		for _, ext := range []string{".json", ".yaml", ".yml"} {
			name := path.Join(dir, stem+ext)
			if info, err := fs.Stat(fsys, name); err == nil && info.Mode().IsRegular() {
				return name
			}
		}
	}
	return ""
}

// load reads a machine whose script and roles are in dir.
func load(fsys fs.FS, prefix, config, dir string) Loaded {
	l := Loaded{Path: path.Join(prefix, config), Claims: stemOf(config)}
	if s := l.Claims; s == configStem || s == configStemOld {
		l.Claims = path.Base(dir)
	}
	read := func(name string) *File {
		data, err := readFile(fsys, name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			l.Found = append(l.Found, guideway.Diagnostic{
				Severity: guideway.SeverityError, Code: CodeFile, File: path.Join(prefix, name),
				Message: "The file cannot be read: " + cause(err) + ".", Fix: "make it a readable file of at most 1 MiB",
			})
			return nil
		}
		return &File{Path: path.Join(prefix, name), Data: data}
	}
	f := read(config)
	if f == nil {
		if len(l.Found) == 0 {
			l.Found = []guideway.Diagnostic{{
				Severity: guideway.SeverityError, Code: CodeFile, File: l.Path,
				Message: "There is no such machine.", Fix: "name a configuration, or a directory with machine.json and script.js",
			}}
		}
		return l
	}
	l.files = Files{Config: *f, Script: read(path.Join(dir, scriptFile))}
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

// readFile reads a file within the bound.
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
		return nil, errors.New("it is no regular file")
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = errors.New("it is too large")
	}
	return data, err
}

// cause is an error without the path, which the finding has already.
func cause(err error) string {
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		return pathError.Err.Error()
	}
	return err.Error()
}
