package checksfile_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/guideway-dev/guideway/internal/evidence/checksfile"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// goldenFile is the file of an archive with the expected proposal.
const goldenFile = "want/checks.yaml"

// Each archive in testdata/detect has the files of a project and the proposed checks, after
// the fixed header. Every proposal is a valid checks file.
func TestPropose(t *testing.T) {
	t.Parallel()
	archives, err := filepath.Glob("testdata/detect/*.txtar")
	if err != nil || len(archives) < 10 {
		t.Fatal(archives, err)
	}
	header, _, _ := strings.Cut((&checksfile.Proposal{}).Text(), "\nchecks:")
	for _, file := range archives {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			files, want := map[string]string{}, ""
			for _, f := range archive.Files {
				if f.Name == goldenFile {
					want = string(f.Data)
					continue
				}
				files[f.Name] = string(f.Data)
			}
			p, err := checksfile.Propose(writeFiles(t, files))
			if err != nil {
				t.Fatal(err)
			}
			text := p.Text()
			if f := checksfile.Parse("checks.yaml", []byte(text)); len(f.Diagnostics) > 0 || len(f.Checks) != len(p.Checks) {
				t.Errorf("the proposal has errors: %v\n%s", f.Diagnostics, text)
			}
			got, ok := strings.CutPrefix(text, header)
			if !ok {
				t.Fatalf("the header is missing in\n%s", text)
			}
			if *update {
				archive.Files = append(archive.Files[:len(files)], txtar.File{Name: goldenFile, Data: []byte(got)})
				if err := os.WriteFile(file, txtar.Format(archive), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The example in the template for a project without known files is a valid check.
func TestTemplate(t *testing.T) {
	t.Parallel()
	text := (&checksfile.Proposal{}).Text()
	before, example, ok := strings.Cut(text, "checks: {}\n")
	if !ok {
		t.Fatal(text)
	}
	f := checksfile.Parse("checks.yaml", []byte(before+"checks:\n"+strings.ReplaceAll(example, "\n#", "\n")[1:]))
	if len(f.Diagnostics) > 0 || len(f.Checks) != 1 || f.Checks[0].Name != "test" {
		t.Errorf("%v", f.Diagnostics)
	}
}
