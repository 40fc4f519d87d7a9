package npm_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/guideway-dev/guideway/internal/catalog/npm"
)

func checkError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func writeFile(t testing.TB, path, text string) {
	t.Helper()
	checkError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	checkError(t, os.WriteFile(path, []byte(text), 0o644))
}

// packageList lists packages as "revision: directories" or "name! problem".
func packageList(root string, packages []npm.Package) []string {
	lines := []string{}
	for _, p := range packages {
		if p.Problem != nil {
			lines = append(lines, p.Name+"! "+p.Problem.Error())
			continue
		}
		var dirs []string
		for _, dir := range p.Dirs {
			rel, _ := filepath.Rel(root, dir)
			dirs = append(dirs, filepath.ToSlash(rel))
		}
		lines = append(lines, p.Revision()+": "+strings.Join(dirs, " "))
	}
	return lines
}

// Packages with definitions are found by their names, and by keys in their package.json.
func TestFind(t *testing.T) {
	t.Parallel()
	project := t.TempDir()
	root := filepath.Join(project, "node_modules")
	writeFile(t, filepath.Join(project, "package.json"), `{"dependencies": {"declares": "*"}, "devDependencies": {"@x/tools": "*"}}`)
	for name, manifest := range map[string]string{
		"workrail-workflows-a":        `{"version": "1.2.3"}`,
		"@acme/workrail-workflows-b":  `{"version": "2.0.0", "workrail": {"workflows": "flows"}}`,
		"@workrail/workflows-c":       `{"version": "3.0.0"}`,
		"@guideway/workflows-d":       `{}`,
		"declares":                    `{"version": "4.0.0", "guideway": {"workflows": ["one", "./two"]}}`,
		"@x/tools":                    `{"version": "5.0.0", "guideway": true}`,
		"declares-and-is-not-wanted":  `{"version": "6.0.0", "guideway": {}}`,
		"@workrail/other":             `{}`,
		"workflows-e":                 `{}`,
		"left-pad":                    `{"version": "1.0.0"}`,
		"workrail-workflows-out":      `{"workrail": {"workflows": "../../../etc"}}`,
		"workrail-workflows-absolute": `{"guideway": {"workflows": "/etc"}}`,
		"workrail-workflows-broken":   `{`,
		"workrail-workflows-huge":     strings.Repeat(" ", 300<<10),
		"workrail-workflows-version":  `{"version": "\u001b[31m1.0.0"}`,
	} {
		writeFile(t, filepath.Join(root, filepath.FromSlash(name), "package.json"), manifest)
	}
	checkError(t, os.Mkdir(filepath.Join(root, "workrail-workflows-empty"), 0o755))
	writeFile(t, filepath.Join(root, ".bin", "package.json"), `{"guideway": true}`)
	want := []string{
		"@acme/workrail-workflows-b@2.0.0: @acme/workrail-workflows-b/flows",
		"@guideway/workflows-d: @guideway/workflows-d/workflows",
		"@workrail/workflows-c@3.0.0: @workrail/workflows-c/workflows",
		"@x/tools@5.0.0: @x/tools/workflows",
		"declares@4.0.0: declares/one declares/two",
		"workrail-workflows-a@1.2.3: workrail-workflows-a/workflows",
		`workrail-workflows-absolute! package.json names the workflow directory "/etc", which is not a path inside the package; write / between directories`,
		"workrail-workflows-broken! package.json cannot be read: the content is not valid: unexpected end of JSON input",
		"workrail-workflows-empty! package.json cannot be read: the file does not exist",
		"workrail-workflows-huge! package.json cannot be read: the file is larger than 262144 bytes",
		`workrail-workflows-out! package.json names the workflow directory "../../../etc", which is not a path inside the package; write / between directories`,
		"workrail-workflows-version: workrail-workflows-version/workflows",
	}
	if diff := cmp.Diff(want, packageList(root, npm.Find([]npm.Root{{Dir: root, Project: project}}))); diff != "" {
		t.Error(diff)
	}
	if all := packageList(root, npm.Find([]npm.Root{{Dir: root}})); len(all) != len(want)+1 {
		t.Errorf("without a project, Find returns %v", all)
	}
	if none := npm.Find([]npm.Root{{Dir: filepath.Join(project, "absent")}}); len(none) != 0 {
		t.Errorf("%v", none)
	}
}

// Links within the project, as in workspaces, are read; links out of it and links in a
// package are not.
func TestLinkedPackages(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("creating links needs a privilege on Windows")
	}
	project, outside := t.TempDir(), t.TempDir()
	root := filepath.Join(project, "node_modules")
	writeFile(t, filepath.Join(outside, "package.json"), `{"version": "1.0.0"}`)
	writeFile(t, filepath.Join(outside, "workflows", "secret.json"), `{"id": "secret"}`)
	writeFile(t, filepath.Join(project, "packages", "own", "package.json"), `{"version": "1.0.0"}`)
	writeFile(t, filepath.Join(root, "workrail-workflows-dir", "package.json"), `{}`)
	writeFile(t, filepath.Join(root, "workrail-workflows-file", "package.json"), `{}`)
	link := func(target, name string) {
		t.Helper()
		checkError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		checkError(t, os.Symlink(target, name))
	}
	link("../packages/own", filepath.Join(root, "workrail-workflows-own"))
	link(outside, filepath.Join(root, "workrail-workflows-evil"))
	link(filepath.Join(outside, "workflows"), filepath.Join(root, "workrail-workflows-dir", "workflows"))
	link(filepath.Join(outside, "package.json"), filepath.Join(root, "workrail-workflows-manifest", "package.json"))
	secret := filepath.Join(root, "workrail-workflows-file", "workflows", "secret.json")
	link(filepath.Join(outside, "workflows", "secret.json"), secret)

	packages := npm.Find([]npm.Root{{Dir: root, Project: project}})
	var problems []string
	for _, p := range packages {
		if p.Problem != nil {
			problems = append(problems, p.Name)
		}
	}
	if diff := cmp.Diff([]string{"workrail-workflows-dir", "workrail-workflows-evil", "workrail-workflows-manifest"}, problems); diff != "" {
		t.Error(diff)
	}
	c := catalog.New([]catalog.Source{catalog.NewDir(catalog.SourceInfo{Name: "x", Location: filepath.Dir(secret)}, catalog.DirOptions{Revision: "x@1"})}, catalog.Options{})
	checkError(t, c.Load(t.Context()))
	if entries := c.List(catalog.Filter{}); len(entries) != 0 {
		t.Errorf("%v is served", entries[0].ID)
	}
}
