// Package npm finds the definitions in installed npm packages. It only reads files below
// node_modules: it installs no package, runs no script, and never starts npm.
//
// It finds packages named workrail-workflows-* or guideway-workflows-*, with or without a
// scope, or @workrail/workflows-* or @guideway/workflows-*; and packages with a key
// "guideway" or "workrail" in package.json that are dependencies of the project or
// installed globally. The key may name directories of definitions:
//
//	{"name": "...", "guideway": {"workflows": "workflows"}}
package npm

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/safeopen"
)

// The limits of the search.
const (
	maxPackages = 50
	maxEntries  = 20_000
	maxManifest = 256 << 10
)

// Package is a package with definitions.
type Package struct {
	Name, Version string
	// Dirs are the package's directories of definitions, which need not exist.
	Dirs []string
	// Problem is the reason why the package cannot be read; Dirs is then empty.
	Problem error
}

// Revision returns the name and version of the package.
func (p *Package) Revision() string { return strings.TrimSuffix(p.Name+"@"+p.Version, "@") }

// Root is a directory called node_modules.
type Root struct {
	Dir string
	// Project is the directory of a package.json; only its dependencies are checked for the
	// key. If it is empty, all packages are checked.
	Project string
}

// Find finds the packages below roots, sorted by name, and returns the first 50. If several
// roots have a package, the one of the last root is used.
func Find(roots []Root) []Package {
	byName := map[string]Package{}
	for _, root := range roots {
		for _, p := range root.findPackages() {
			byName[p.Name] = p
		}
	}
	packages := slices.SortedFunc(maps.Values(byName), func(a, b Package) int { return strings.Compare(a.Name, b.Name) })
	return packages[:min(len(packages), maxPackages)]
}

// manifest has the needed members of a package.json.
type manifest struct {
	Name         string            `json:"name"`
	Version      string            `json:"version"`
	Own          json.RawMessage   `json:"guideway"`
	Other        json.RawMessage   `json:"workrail"`
	Dependencies map[string]string `json:"dependencies"`
	Development  map[string]string `json:"devDependencies"`
}

// findPackages finds the packages of one directory.
func (r Root) findPackages() []Package {
	mayDeclare := func(string) bool { return true }
	if r.Project != "" {
		m, _ := readManifest(r.Project) // a project need not be a package
		mayDeclare = func(name string) bool {
			_, runs := m.Dependencies[name]
			_, develops := m.Development[name]
			return runs || develops
		}
	}
	var packages []Package
	for _, name := range r.packageNames() {
		if !hasPackageName(name) && !mayDeclare(name) {
			continue
		}
		if p := r.readPackage(name); p != nil {
			packages = append(packages, *p)
		}
	}
	return packages
}

// packageNames lists the installed packages, with scopes.
func (r Root) packageNames() (names []string) {
	entries, err := os.ReadDir(r.Dir)
	if err != nil {
		return nil // most directories have no node_modules
	}
	for _, entry := range entries[:min(len(entries), maxEntries)] {
		name := entry.Name()
		if strings.HasPrefix(name, ".") {
			continue
		}
		if !strings.HasPrefix(name, "@") {
			names = append(names, name)
			continue
		}
		scoped, _ := os.ReadDir(filepath.Join(r.Dir, name))
		for _, inner := range scoped[:min(len(scoped), maxEntries)] {
			if !strings.HasPrefix(inner.Name(), ".") {
				names = append(names, name+"/"+inner.Name())
			}
		}
	}
	return names
}

// hasPackageName reports whether the name of a package marks it as one with definitions.
func hasPackageName(name string) bool {
	scope, base, scoped := strings.Cut(name, "/")
	if !scoped {
		base = name
	}
	if strings.HasPrefix(base, "workrail-workflows-") || strings.HasPrefix(base, "guideway-workflows-") {
		return true
	}
	return scoped && (scope == "@workrail" || scope == "@guideway") && strings.HasPrefix(base, "workflows-")
}

// readPackage reads the package.json of a package; nil if it has no definitions.
func (r Root) readPackage(name string) *Package {
	dir := filepath.Join(r.Dir, filepath.FromSlash(name))
	p := &Package{Name: name}
	refuse := func(message, fix string) *Package {
		if !hasPackageName(name) {
			return nil // errors of other packages are not reported
		}
		p.Dirs, p.Problem = nil, guideway.Errorf(guideway.CodeUnavailable, "%s", message).WithFix("%s", fix)
		return p
	}
	info, err := os.Lstat(dir)
	switch {
	case err != nil:
		return nil // removed since it was listed
	case info.Mode()&fs.ModeSymlink != 0:
		// Workspaces and pnpm make links within the project.
		if leadsOut(filepath.Dir(r.Dir), dir) {
			return refuse("the package is a symbolic link, and its target is missing or outside the installation directory", "install the package, or configure the directory as a source of workflows")
		}
	case !info.IsDir():
		return nil
	}
	m, err := readManifest(dir)
	if err != nil {
		return refuse("package.json cannot be read: "+err.Error(), "correct package.json, or reinstall the package")
	}
	dirs, declared, err := m.definitionDirs()
	if err != nil {
		return refuse(err.Error(), `write {"guideway": {"workflows": "workflows"}} in package.json`)
	}
	if !hasPackageName(name) && !declared {
		return nil
	}
	p.Version = clipVersion(m.Version)
	for _, named := range dirs {
		location := filepath.Join(dir, filepath.FromSlash(named))
		if _, err := os.Lstat(location); err == nil && leadsOut(dir, location) {
			return refuse("the workflow directory is a symbolic link, and its target is missing or outside the package", "put the workflows into the package")
		}
		p.Dirs = append(p.Dirs, location)
	}
	return p
}

// clipVersion returns the version of a package, or "" if it is not safe to show.
func clipVersion(version string) string {
	if len(version) > 64 || strings.ContainsFunc(version, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return ""
	}
	return version
}

// leadsOut reports whether the path name leads to a target outside the directory home, or
// cannot be resolved.
func leadsOut(home, name string) bool {
	target, err := filepath.EvalSymlinks(name)
	home, homeErr := filepath.EvalSymlinks(home)
	if err != nil || homeErr != nil {
		return true
	}
	rel, err := filepath.Rel(home, target)
	return err != nil || !filepath.IsLocal(rel)
}

func readManifest(dir string) (m manifest, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return m, err
	}
	defer root.Close()
	file, err := safeopen.OpenIn(root, "package.json")
	if errors.Is(err, fs.ErrNotExist) {
		return m, errors.New("the file does not exist")
	}
	if err != nil {
		return m, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxManifest+1))
	if err != nil {
		return m, err
	}
	if len(data) > maxManifest {
		return m, fmt.Errorf("the file is larger than %d bytes", maxManifest)
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return manifest{}, fmt.Errorf("the content is not valid: %w", err)
	}
	return m, nil
}

// definitionDirs returns the directories that a package names, or the default directory if
// it names none; declared reports whether its package.json has one of the keys.
func (m manifest) definitionDirs() (dirs []string, declared bool, err error) {
	for _, key := range []json.RawMessage{m.Own, m.Other} {
		if key == nil || string(key) == "null" || string(key) == "false" {
			continue
		}
		declared = true
		var object struct {
			Workflows any `json:"workflows"`
		}
		if json.Unmarshal(key, &object) != nil {
			continue
		}
		switch named := object.Workflows.(type) {
		case string:
			dirs = append(dirs, named)
		case []any:
			for _, item := range named {
				if text, ok := item.(string); ok {
					dirs = append(dirs, text)
				}
			}
		}
	}
	if len(dirs) == 0 {
		return []string{"workflows"}, declared, nil
	}
	for i, dir := range dirs {
		dirs[i] = path.Clean(dir)
		if !filepath.IsLocal(filepath.FromSlash(dirs[i])) || strings.ContainsAny(dir, "\\\x00") {
			return nil, declared, fmt.Errorf("package.json names the workflow directory %q, which is not a path inside the package; write / between directories", dir)
		}
	}
	return slices.Compact(dirs), declared, nil
}
