// Package backup implements the commands that copy the data of Guideway to an archive and
// restore it.
package backup

import (
	"archive/zip"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/cli/server"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/platform/atomicfile"
	"github.com/guideway-dev/guideway/internal/platform/safeopen"
	"github.com/guideway-dev/guideway/internal/store/postgres"
	"github.com/guideway-dev/guideway/internal/store/rows"
	"github.com/guideway-dev/guideway/internal/store/sqlite"
)

// The kinds and the names of stores in an archive.
const (
	kindSQLite    = "sqlite"
	kindPostgres  = "postgres"
	storeRuns     = "runs"
	storeMachines = "machines"
)

// The members with special rules.
const (
	memberData = "data"
	memberKey  = "keys/journal"
)

// place is a file or directory of this machine that an archive has a copy of. The member of a
// file in a directory is named member/FILE.
type place struct {
	member, path string
	// keep reports that a restore does not replace a file.
	keep bool
}

// listPlaces returns the places. A file belongs to the first place that has it.
func listPlaces(a *app.App, cfg *config.Config) ([]place, error) {
	settings, err := app.ConfigFile(cfg)
	list := []place{
		{"heads/runs", app.HeadsPath(cfg), true},
		{"heads/machines", app.HeadsPath(server.MachineConfig(cfg)), true},
		{"heads/audit", a.NewAudit(cfg).HeadPath, true},
		{"settings", settings, true},
		{memberKey, cfg.Journal.KeyFile, false},
		{"keys/encryption", cfg.Encryption.KeyFile, false},
		{"keys/token", cfg.TokenFile, false},
	}
	for _, name := range []string{"access", "approval-passphrase", "approvals.key", "attestation-keys", "logins.key", "tokens"} {
		list = append(list, place{"secrets/" + name, filepath.Join(app.UserSecretsDir(cfg), name), false})
	}
	list = append(list, place{memberData, cfg.DataDir, false})
	if cfg.Dirs.Config != cfg.DataDir {
		list = append(list, place{"config", cfg.Dirs.Config, true})
	}
	if cfg.Checkpoints.Dir != "" {
		list = append(list, place{"contexts", cfg.Checkpoints.Dir, false})
	}
	return list, err
}

// isTransient reports whether an entry of the data directory belongs to running processes or
// to restores, or can be fetched again.
func isTransient(cfg *config.Config, path string) bool {
	name := filepath.Base(path)
	return strings.HasPrefix(name, ".") || strings.HasPrefix(name, replacedPrefix) || strings.HasSuffix(name, ".lock") ||
		slices.Contains([]string{
			filepath.Join(cfg.DataDir, "servers"), filepath.Join(cfg.DataDir, "lost+found"), app.RestoreMarker(cfg),
			cfg.Dirs.Cache, cmp.Or(cfg.Workflows.CacheDir, filepath.Join(cfg.DataDir, "sources")),
		}, path)
}

// NewBackupCmd returns the command guideway backup.
func NewBackupCmd(a *app.App) *cobra.Command {
	o := &app.NameOptions{App: a}
	return &cobra.Command{
		Use:  "backup FILE",
		Args: app.ExactArgs(1, "the file of the archive", "guideway backup monday.zip"),
		RunE: app.RunWithArg(runBackup, o, &o.Name),
	}
}

// copier writes an archive.
type copier struct {
	manifest

	app    *app.App
	cfg    *config.Config
	places []place
	// taken has the paths that the archive has, and temp is a path for copies of databases.
	taken map[string]bool
	temp  string
	zip   *zip.Writer
}

func runBackup(ctx context.Context, o *app.NameOptions) error {
	cfg, err := o.App.Load()
	if err != nil {
		return err
	}
	path := o.App.Host.Abs(o.Name)
	c := &copier{app: o.App, cfg: cfg, taken: map[string]bool{}, manifest: manifest{
		Format: formatVersion, Created: o.App.Host.CurrentTime().UTC(), Program: app.Version(),
		Store: kindSQLite, Stores: map[string]rows.Copied{}, Members: map[string]string{},
	}}
	if c.places, err = listPlaces(o.App, cfg); err != nil {
		return err
	}
	if err := c.checkTarget(path); err != nil {
		return err
	}
	temp, err := os.MkdirTemp(filepath.Dir(path), ".guideway-backup-*")
	if err == nil {
		defer func() { _ = os.RemoveAll(temp) }()
		c.temp = filepath.Join(temp, "copy.db")
		err = atomicfile.ReplaceWith(path, func(out io.Writer) error { return c.write(ctx, out) })
	}
	switch {
	case err == nil:
	case guideway.ErrorCode(err) != guideway.CodeInternal:
		return err
	default:
		return guideway.Errorf(guideway.CodeUnavailable, "write the backup %s: %w", path, err).
			WithFix("name a file in a directory that this user can write, on a disk with space for the archive and a copy of the databases")
	}
	fmt.Fprintf(o.App.Host.Out, "Backup: %s\nContent: %s\n", path, c.describe())
	if mode := cfg.Encryption.Mode; mode != config.EncryptionDisabled && c.Members["keys/encryption"] == "" {
		fmt.Fprintln(o.App.Host.Err, "warning: the archive does not have the passphrase or the key in the keychain that decrypts its data; keep a copy of the passphrase in another place, or move the key into a file before the next backup: guideway encryption rotate --to key-file")
	}
	return nil
}

// checkTarget returns an error if the archive must not be written to a path, or there is no
// store.
func (c *copier) checkTarget(path string) error {
	if exists(path) {
		return guideway.Errorf(guideway.CodeConflict, "the file %s exists", path).WithFix("name a new file")
	}
	for _, p := range c.places {
		if inside, err := filepath.Rel(p.path, path); err == nil && filepath.IsLocal(inside) {
			return guideway.Errorf(guideway.CodeInvalid, "the archive %s would be in the directory %s, which it is a copy of", path, p.path).
				WithFix("name a file in another directory, best on another disk")
		}
	}
	if !app.HasStore(c.cfg) && !app.HasStore(server.MachineConfig(c.cfg)) {
		return guideway.Errorf(guideway.CodeNotFound, "there is no store in %s", c.cfg.DataDir).WithFix("name the data directory with --data-dir, or the database with --store")
	}
	return app.CheckRestored(c.cfg)
}

// write writes the archive. Heads must not be newer than the store, so they are copied first.
// Blobs are copied before and after the store, because processes add and delete them.
func (c *copier) write(ctx context.Context, out io.Writer) error {
	c.zip = zip.NewWriter(out)
	for _, pass := range []func(p place, path string) bool{
		func(p place, _ string) bool { return strings.HasPrefix(p.member, "heads/") },
		func(_ place, path string) bool { return strings.Contains(filepath.ToSlash(path), "/blobs/") },
		isDatabase,
		nil, // the tables of PostgreSQL
		func(place, string) bool { return true },
	} {
		if pass == nil {
			if err := c.addTables(ctx); err != nil {
				return err
			}
			continue
		}
		for _, p := range c.places {
			if err := c.addPlace(ctx, p, pass); err != nil {
				return err
			}
		}
	}
	if c.Members[memberKey] == "" && c.Stores[storeRuns].Rows["runs"]+c.Stores[storeMachines].Rows["runs"] > 0 {
		return app.MissingKeyError(c.cfg.Journal.KeyFile)
	}
	_, err := addMember(c.zip, manifestName, 0o600, c.Created, func(w io.Writer) error { return app.WriteJSON(w, c.manifest) })
	return errors.Join(err, c.zip.Close())
}

// addTables adds the tables of a PostgreSQL store.
func (c *copier) addTables(ctx context.Context) (err error) {
	if !c.cfg.UsesPostgres() {
		return nil
	}
	c.Store = kindPostgres
	c.Stores, err = postgres.DumpTables(ctx, storeURLs(c.cfg), func(store, table string, copyTo func(io.Writer) error) error {
		return c.add(fmt.Sprintf("%s/%s/%s.csv", kindPostgres, store, table), 0o600, copyTo)
	})
	return err
}

func (c *copier) add(name string, mode fs.FileMode, copyTo func(io.Writer) error) (err error) {
	c.Members[name], err = addMember(c.zip, name, mode, c.Created, copyTo)
	return err
}

// addPlace adds the files of a place that match and are not in the archive.
func (c *copier) addPlace(ctx context.Context, p place, match func(p place, path string) bool) error {
	return filepath.WalkDir(p.path, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil || ctx.Err() != nil:
			return errors.Join(err, ctx.Err())
		case path != p.path && (p.member == memberData && isTransient(c.cfg, path) || entry.IsDir() && c.isPlace(path)):
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		case entry.IsDir() || c.taken[path] || !match(p, path) || strings.HasSuffix(path, ".db-wal") || strings.HasSuffix(path, ".db-shm"):
			return nil
		}
		c.taken[path] = true
		rel, err := filepath.Rel(p.path, path)
		if err != nil {
			return err
		}
		return c.addFile(ctx, strings.TrimSuffix(p.member+"/"+filepath.ToSlash(rel), "/."), path, isDatabase(p, path))
	})
}

// isPlace reports whether a directory in a place is another place.
func (c *copier) isPlace(path string) bool {
	return slices.ContainsFunc(c.places, func(p place) bool { return p.path == path })
}

// isDatabase reports whether a file is an SQLite database.
func isDatabase(p place, path string) bool { return !p.keep && filepath.Ext(path) == ".db" }

// addFile adds the present content of a file, or a copy of a database.
func (c *copier) addFile(ctx context.Context, name, path string, database bool) error {
	from := path
	if database {
		defer func() { _ = os.Remove(c.temp) }() // runBackup removes the directory, too
		copied, err := sqlite.CopyFile(ctx, path, c.temp)
		if err != nil {
			return err
		}
		switch from = c.temp; path {
		case app.StorePath(c.cfg):
			c.Stores[storeRuns] = copied
		case app.StorePath(server.MachineConfig(c.cfg)):
			c.Stores[storeMachines] = copied
		}
	}
	file, err := safeopen.Open(from) // secrets may be links
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, safeopen.ErrSpecial):
		fmt.Fprintf(c.app.Host.Err, "warning: not in the backup: %v\n", err)
		return nil
	case err != nil:
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	return c.add(name, info.Mode(), func(w io.Writer) error {
		_, err := io.CopyN(w, file, info.Size()) // the file may grow
		return err
	})
}

// storeURLs returns the URLs of the PostgreSQL stores by their names.
func storeURLs(cfg *config.Config) map[string]string {
	return map[string]string{storeRuns: cfg.Store, storeMachines: server.MachineConfig(cfg).Store}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
