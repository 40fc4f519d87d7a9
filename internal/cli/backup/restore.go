package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/cli/server"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/platform/atomicfile"
	"github.com/guideway-dev/guideway/internal/platform/safeopen"
	"github.com/guideway-dev/guideway/internal/store/postgres"
	"github.com/guideway-dev/guideway/internal/store/sqlite"
)

// replacedPrefix begins the name of the directory with the files that a restore has replaced.
const replacedPrefix = "replaced-"

// restoreOptions is the command line of guideway restore.
type restoreOptions struct {
	app     *app.App
	file    string
	replace bool
}

// NewRestoreCmd returns the command guideway restore.
func NewRestoreCmd(a *app.App) *cobra.Command {
	o := &restoreOptions{app: a}
	cmd := &cobra.Command{
		Use:  "restore FILE",
		Args: app.ExactArgs(1, "the file of the archive", "guideway restore monday.zip"),
		RunE: app.RunWithArg(runRestore, o, &o.file),
	}
	cmd.Flags().BoolVar(&o.replace, "replace", false, "replace existing files and tables, and keep them under another name")
	return cmd
}

// restorer restores an archive.
type restorer struct {
	*manifest

	cfg    *config.Config
	places []place
	// staged is the directory with the unpacked archive, aside the one for replaced files.
	staged, aside string
	replace       bool
	// suffix is for the names of replaced schemas; "" if none is replaced.
	suffix string
	// kept are existing files that differ from the archive and were not replaced.
	kept []string
}

func runRestore(ctx context.Context, o *restoreOptions) error {
	cfg, err := o.app.Load()
	if err != nil {
		return err
	}
	file, err := safeopen.Open(o.app.Host.Abs(o.file))
	if err != nil {
		return app.ReadError(o.file, err)
	}
	defer file.Close()
	r := &restorer{
		cfg: cfg, replace: o.replace || exists(app.RestoreMarker(cfg)), staged: filepath.Join(cfg.DataDir, ".restore"),
		aside: filepath.Join(cfg.DataDir, replacedPrefix+strings.ReplaceAll(o.app.Host.CurrentTime().UTC().Format("20060102150405.000"), ".", "")),
	}
	if r.replace {
		r.suffix = "_" + strings.ReplaceAll(filepath.Base(r.aside), "-", "_")
	}
	if r.places, err = listPlaces(o.app, cfg); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(r.staged) }() // the next restore removes it, too
	err = r.run(ctx, file)
	switch {
	case err == nil:
	case errors.Is(err, errDamaged):
		return guideway.Errorf(guideway.CodeInvalid, "%s: %s", o.file, strings.ReplaceAll(err.Error(), "\n", ": ")).WithFix("use another copy of the archive, or another backup; nothing was changed")
	case guideway.ErrorCode(err) != guideway.CodeInternal:
		return err
	default:
		return guideway.Errorf(guideway.CodeUnavailable, "restore %s: %w", o.file, err).
			WithFix("make %s and the file of the error writable for this user, check that the disk has space, and repeat the command", cfg.DataDir)
	}
	fmt.Fprintf(o.app.Host.Out, "Restored: %s of %s\nContent: %s\n", o.file, r.Created.Format(time.RFC3339), r.describe())
	for _, path := range r.kept {
		fmt.Fprintf(o.app.Host.Out, "Kept: %s, which differs from the backup\n", path)
	}
	if r.replace {
		fmt.Fprintf(o.app.Host.Out, "Replaced: old files are in %s, and old tables in schemas whose names end with %s; remove them when you no longer need them\n", r.aside, r.suffix)
	}
	fmt.Fprintln(o.app.Host.Out, "Next: guideway doctor; after the restore of an older backup also guideway runs verify")
	return nil
}

// run unpacks and checks the archive, and puts it in place.
func (r *restorer) run(ctx context.Context, file *os.File) error {
	info, err := file.Stat()
	if err == nil {
		err = errors.Join(os.RemoveAll(r.staged), atomicfile.MakeDir(r.staged))
	}
	if err == nil {
		r.manifest, err = extract(ctx, file, info.Size(), r.staged)
	}
	if err == nil {
		err = r.check()
	}
	if err != nil {
		return err
	}
	replaced, err := r.listReplaced()
	for _, cfg := range []*config.Config{r.cfg, server.MachineConfig(r.cfg)} {
		if err == nil && !cfg.UsesPostgres() && exists(app.StorePath(cfg)) {
			err = sqlite.CheckUnused(ctx, app.StorePath(cfg))
		}
	}
	if err != nil {
		return err
	}
	marker := app.RestoreMarker(r.cfg)
	move := func() error { // Guideway opens no store while the marker exists
		if err := atomicfile.Replace(marker, "A restore of this directory did not complete. Repeat guideway restore.\n"); err != nil {
			return err
		}
		return r.moveFiles(replaced)
	}
	if r.cfg.UsesPostgres() {
		tables := map[string]fs.FS{}
		for name := range r.Stores {
			tables[name] = os.DirFS(filepath.Join(r.staged, kindPostgres, name))
		}
		err = postgres.LoadTables(ctx, storeURLs(r.cfg), tables, r.Stores, r.suffix, move)
	} else {
		err = move()
	}
	if err == nil {
		err = errors.Join(os.Remove(marker), atomicfile.SyncDir(r.cfg.DataDir))
	}
	return err
}

// check returns an error if the archive does not fit the settings or this version.
func (r *restorer) check() error {
	kind, newest := kindSQLite, sqlite.SchemaVersion()
	if r.cfg.UsesPostgres() {
		kind, newest = kindPostgres, postgres.SchemaVersion()
	}
	if r.Store != kind {
		return guideway.Errorf(guideway.CodeInvalid, "the backup is of a %s store, and the settings select %s", r.Store, r.cfg.RedactedStore()).
			WithFix("select a store of that kind: --store sqlite, or --store with the URL of a PostgreSQL database")
	}
	for name, s := range r.Stores {
		if s.Schema < 1 || s.Schema > newest || r.Format != formatVersion {
			return guideway.Errorf(guideway.CodeInvalid, "the backup has the format %d, and its store of %s the schema %d; this version of Guideway supports the format %d and schemas up to %d", r.Format, name, s.Schema, formatVersion, newest).
				WithFix("use Guideway %s, which wrote the backup, or a later version", r.Program)
		}
	}
	for name := range r.Members {
		if _, ok := r.target(name); !ok && !strings.HasPrefix(name, kindPostgres+"/") {
			return errors.Join(errDamaged, fmt.Errorf("a backup has no member %.200q", name))
		}
	}
	return nil
}

// target returns the place of a member, with the path of the member on this machine.
func (r *restorer) target(name string) (place, bool) {
	for _, p := range r.places {
		if rel, ok := strings.CutPrefix(name+"/", p.member+"/"); ok {
			p.path = filepath.Join(p.path, filepath.FromSlash(rel))
			return p, true
		}
	}
	return place{}, false
}

// listReplaced returns the entries of the data directory that are replaced. Without --replace
// these, and other files that would be replaced, are an error.
func (r *restorer) listReplaced() (list []string, err error) {
	entries, err := os.ReadDir(r.cfg.DataDir)
	for _, entry := range entries {
		path := filepath.Join(r.cfg.DataDir, entry.Name())
		holds := func(kept string) bool {
			return strings.HasPrefix(kept+string(filepath.Separator), path+string(filepath.Separator))
		}
		if !isTransient(r.cfg, path) && !slices.ContainsFunc([]string{r.cfg.File, r.cfg.Dirs.Config, r.cfg.Journal.HeadsDir}, holds) {
			list = append(list, path)
		}
	}
	found := slices.Clone(list)
	for name := range r.Members {
		if p, ok := r.target(name); ok && !p.keep && exists(p.path) && !r.isRestored(name, p.path) {
			found = append(found, p.path)
		}
	}
	if err == nil && len(found) > 0 && !r.replace {
		return nil, guideway.Errorf(guideway.CodeConflict, "the restore would replace %s", slices.Min(found)).
			WithFix("restore into an empty directory (--data-dir), or add --replace, which keeps the old files in %s", r.aside)
	}
	return list, err
}

// isRestored reports whether a file is equal to a member.
func (r *restorer) isRestored(name, path string) bool {
	have, err := os.ReadFile(path)
	want, err2 := os.ReadFile(filepath.Join(r.staged, filepath.FromSlash(name)))
	return err == nil && err2 == nil && bytes.Equal(have, want)
}

// moveFiles moves old files aside, and the files of the archive to their places.
func (r *restorer) moveFiles(replaced []string) error {
	for _, path := range replaced {
		if !exists(path) { // CheckUnused has removed the write-ahead log
			continue
		}
		if err := moveFile(path, filepath.Join(r.aside, memberData, filepath.Base(path))); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Members)) {
		p, ok := r.target(name)
		switch {
		case !ok || r.isRestored(name, p.path):
			continue
		case exists(p.path) && p.keep:
			r.kept = append(r.kept, p.path)
			continue
		case exists(p.path):
			if err := moveFile(p.path, filepath.Join(r.aside, filepath.FromSlash(name))); err != nil {
				return err
			}
		}
		if err := moveFile(filepath.Join(r.staged, filepath.FromSlash(name)), p.path); err != nil {
			return err
		}
	}
	return nil
}

// moveFile moves a file or directory, or copies a file to another file system.
func moveFile(from, to string) error {
	if err := atomicfile.MakeDir(filepath.Dir(to)); err != nil {
		return err
	}
	if os.Rename(from, to) == nil {
		return atomicfile.SyncDir(filepath.Dir(to))
	}
	file, err := os.Open(from)
	if err != nil {
		return err
	}
	defer file.Close()
	err = atomicfile.ReplaceWith(to, func(w io.Writer) error {
		_, err := io.Copy(w, file)
		return err
	})
	if err != nil {
		return err
	}
	return os.Remove(from)
}
