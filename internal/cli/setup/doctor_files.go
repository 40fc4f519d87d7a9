package setup

import (
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/config"
)

// maxFilesShown is the maximum number of inaccessible files that a check lists.
const maxFilesShown = 100

// checkDataFiles checks that this user can read and write each file of the data directory
// and of the directory of the head files.
func checkDataFiles(cfg *config.Config) Check {
	c := checkDirectory("data directory", cfg.DataDir, "created when needed")
	if c.Status != CheckOK {
		return c
	}
	dirs := []string{cfg.DataDir}
	if inside, err := filepath.Rel(cfg.DataDir, cfg.Journal.HeadsDir); err != nil || !filepath.IsLocal(inside) {
		dirs = append(dirs, cfg.Journal.HeadsDir)
	}
	count, foreign := 0, false
	for _, dir := range dirs {
		// The error can be ignored: it is about a directory that the walk has already
		// reported.
		_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.Type()&fs.ModeSymlink != 0 || isAccessible(path, entry.IsDir()) {
				return nil
			}
			owner, isForeign := describeOwner(entry)
			foreign = foreign || isForeign
			if count++; count <= maxFilesShown {
				c.Diagnostics = append(c.Diagnostics, guideway.Diagnostic{
					Severity: guideway.SeverityError, File: path,
					Message: "this user cannot read and write the file or directory" + owner,
				})
			}
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		})
	}
	if count == 0 {
		return c
	}
	c.Status = CheckFail
	c.Message += fmt.Sprintf(": this user cannot read and write %s", app.Plural(count, "file or directory", "files and directories"))
	c.Fix = accessFix(dirs, foreign)
	return c
}
