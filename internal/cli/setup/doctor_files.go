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
	var found inaccessibleFiles
	for _, dir := range dirs {
		found.addDir(dir, func(one fileAccess) bool { return one.readable && one.writable })
	}
	return found.addTo(c, dirs, CheckFail)
}

// checkConfigFiles checks that this user can read each file of the configuration directory,
// and can change those of other users. A file of this user may be read-only, as the objects
// of a git repository are.
func checkConfigFiles(cfg *config.Config) Check {
	c := checkDirectory("config directory", cfg.Dirs.Config, "created when needed")
	if c.Status != CheckOK {
		return c
	}
	var found inaccessibleFiles
	found.addDir(cfg.Dirs.Config, func(one fileAccess) bool { return one.readable && (one.writable || !one.foreign) })
	if found.unreadable {
		return found.addTo(c, []string{cfg.Dirs.Config}, CheckFail)
	}
	return found.addTo(c, []string{cfg.Dirs.Config}, CheckWarn) // the settings may be on a read-only volume
}

// fileAccess is the access of this user to a file or a directory.
type fileAccess struct {
	readable, writable bool
	// foreign reports that another user owns the file; owner describes the owner.
	foreign bool
	owner   string
}

// inaccessibleFiles are the files that do not have the required access.
type inaccessibleFiles struct {
	count               int
	unreadable, foreign bool
	diagnostics         []guideway.Diagnostic
}

// addDir adds the files of a directory whose access is not sufficient.
func (f *inaccessibleFiles) addDir(dir string, isSufficient func(fileAccess) bool) {
	// The error can be ignored: it is about a directory that the walk has already reported.
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Type()&fs.ModeSymlink != 0 {
			return nil
		}
		var one fileAccess
		one.readable, one.writable = accessOf(path, entry.IsDir())
		if one.readable && one.writable {
			return nil
		}
		one.owner, one.foreign = describeOwner(entry)
		if isSufficient(one) {
			return nil
		}
		access, kind := "write", "file"
		if !one.readable {
			access = "read"
		}
		if entry.IsDir() {
			kind = "directory"
		}
		f.unreadable, f.foreign = f.unreadable || !one.readable, f.foreign || one.foreign
		if f.count++; f.count <= maxFilesShown {
			f.diagnostics = append(f.diagnostics, guideway.Diagnostic{
				Severity: guideway.SeverityError, File: path,
				Message: "this user cannot " + access + " the " + kind + one.owner,
			})
		}
		if entry.IsDir() {
			return fs.SkipDir
		}
		return nil
	})
}

// addTo returns a check with the files, and with the status if there are any.
func (f *inaccessibleFiles) addTo(c Check, dirs []string, status string) Check {
	if f.count == 0 {
		return c
	}
	c.Status, c.Diagnostics = status, f.diagnostics
	if status == CheckWarn {
		for i := range c.Diagnostics {
			c.Diagnostics[i].Severity = guideway.SeverityWarning
		}
	}
	c.Message += fmt.Sprintf(": this user cannot read or cannot write %s", app.Plural(f.count, "file or directory", "files and directories"))
	c.Fix = accessFix(dirs, f.foreign)
	return c
}
