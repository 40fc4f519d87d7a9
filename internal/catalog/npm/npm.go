// Package npm finds the definitions in npm packages that are installed. It reads
// files below node_modules and nothing else: no package is installed, none of its
// scripts run, and npm is never started.
//
// A package counts that is called workrail-workflows-* or guideway-workflows-*, with
// or without a scope, or @workrail/workflows-* or @guideway/workflows-*; and one whose
// package.json has a key "guideway" or "workrail", where the project names it as a
// dependency or it is installed globally. The key may name directories of definitions:
//
//	{"name": "...", "guideway": {"workflows": "workflows"}}
package npm

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/safeopen"
)

// The bounds of what is looked at.
const (
	maxPackages = 50
	maxEntries  = 20_000
	maxManifest = 256 << 10
)

// Package is one with definitions.
type Package struct {
	Name, Version string
	// Dirs are its directories of definitions, which need not be there.
	Dirs []string
	// Problem says why it cannot be read; Dirs is then empty.
	Problem error
}

// Revision names the version of the package.
func (p *Package) Revision() string { return strings.TrimSuffix(p.Name+"@"+p.Version, "@") }

// Root is a directory called node_modules.
type Root struct {
	Dir string
	// Project is the directory of a package.json; its dependencies alone are looked at
	// for the key. Without it all packages are.
	Project string
}

// Find finds the packages below roots, in the order of their names. A package that
// is in several of them is that of the last.
func Find(roots []Root) []Package {
	byName := map[string]Package{}
	for _, root := range roots {
		for _, p := range root.packages() {
			byName[p.Name] = p
		}
	}
	packages := make([]Package, 0, len(byName))
	for _, p := range byName {
		packages = append(packages, p)
	}
	slices.SortFunc(packages, func(a, b Package) int { return strings.Compare(a.Name, b.Name) })
	return packages[:min(len(packages), maxPackages)]
}

// manifest is what is read of a package.json.
type manifest struct {
	Name         string            `json:"name"`
	Version      string            `json:"version"`
	Own          json.RawMessage   `json:"guideway"`
	Other        json.RawMessage   `json:"workrail"`
	Dependencies map[string]string `json:"dependencies"`
	Development  map[string]string `json:"devDependencies"`
}

// packages finds the packages of one directory.
func (r Root) packages() []Package {
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
	for _, name := range r.names() {
		if !isNamed(name) && !mayDeclare(name) {
			continue
		}
		if p := r.look(name); p != nil {
			packages = append(packages, *p)
		}
	}
	return packages
}

// names lists what is installed, with scopes.
func (r Root) names() (names []string) {
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

// isNamed says whether a package is one by its name.
func isNamed(name string) bool {
	scope, base, scoped := strings.Cut(name, "/")
	if !scoped {
		base = name
	}
	if strings.HasPrefix(base, "workrail-workflows-") || strings.HasPrefix(base, "guideway-workflows-") {
		return true
	}
	return scoped && (scope == "@workrail" || scope == "@guideway") && strings.HasPrefix(base, "workflows-")
}

// look reads the package.json of a package; nil where it has no definitions.
func (r Root) look(name string) *Package {
	dir := filepath.Join(r.Dir, filepath.FromSlash(name))
	p := &Package{Name: name}
	refuse := func(message, fix string) *Package {
		if !isNamed(name) {
			return nil // what is wrong with other packages is nobody's concern here
		}
		p.Dirs, p.Problem = nil, guideway.Errorf(guideway.CodeUnavailable, "%s", message).WithFix("%s", fix)
		return p
	}
	info, err := os.Lstat(dir)
	switch {
	case err != nil:
		return nil // gone since it was listed
	case info.Mode()&fs.ModeSymlink != 0:
		// A link is what a workspace and pnpm make, within the project.
		if leadsOut(filepath.Dir(r.Dir), dir) {
			return refuse("the package is a link that leads out of where it is installed", "install the package, or name the directory as one of workflows")
		}
	case !info.IsDir():
		return nil
	}
	m, err := readManifest(dir)
	if err != nil {
		return refuse("package.json cannot be read: "+err.Error(), "install the package again")
	}
	dirs, declared, err := m.dirs()
	if err != nil {
		return refuse(err.Error(), `write {"guideway": {"workflows": "workflows"}}`)
	}
	if !isNamed(name) && !declared {
		return nil
	}
	p.Version = clip(m.Version)
	for _, named := range dirs {
		location := filepath.Join(dir, filepath.FromSlash(named))
		if _, err := os.Lstat(location); err == nil && leadsOut(dir, location) {
			return refuse("its directory of workflows is a link that leads out of the package", "put the workflows into the package")
		}
		p.Dirs = append(p.Dirs, location)
	}
	return p
}

// clip makes a version of another fit to be shown.
func clip(version string) string {
	if len(version) > 64 || strings.ContainsFunc(version, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return ""
	}
	return version
}

// leadsOut says whether a path ends outside of a directory.
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
		return m, errors.New("there is none")
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
		return m, fmt.Errorf("it is larger than %d bytes", maxManifest)
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return manifest{}, errors.New("it is not that of a package")
	}
	return m, nil
}

// dirs are the directories of definitions that a package names, else the usual one;
// declared says that it has one of the keys.
func (m manifest) dirs() (dirs []string, declared bool, err error) {
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
			return nil, declared, errors.New("package.json names a directory outside of the package")
		}
	}
	return slices.Compact(dirs), declared, nil
}
